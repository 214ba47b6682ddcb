// Walks through every page of a running console, and fails on errors, violations of its content security policy, and of
// accessibility. Takes screenshots in light, dark, and of a phone, and prints what the first page costs.
//
//   walk.mjs URL OUTPUT_FOLDER

import { mkdir } from "node:fs/promises";
import { launch, openPage, violations } from "./browser.mjs";

const LOOKS = {
  light: { scheme: "light" },
  dark: { scheme: "dark" },
  phone: { scheme: "light", width: 375, height: 812 },
};
const SERVERS = ["MCPServer", "VirtualMCPServer", "MCPRemoteProxy"];

/**
 * @param {(page: any) => Promise<unknown>} signIn on a page that was opened
 * @returns {Promise<string[]>} problems
 */
export async function walk(browser, url, folder, log = console.log, signIn = async () => {}) {
  await mkdir(folder, { recursive: true });
  const problems = [];
  for (const [look, options] of Object.entries(LOOKS)) {
    const opened = await openPage(browser, options);
    const { page } = opened;
    await page.goto(url);
    await signIn(page);
    await page.waitForSelector("tbody tr");
    if (look === "light") log(`first page: ${await firstPage(page)}`);
    const addresses = await pages(page);
    for (const [name, address] of Object.entries(addresses)) {
      await page.evaluate((address) => (location.hash = address), address);
      await settle(page, name);
      // Not beyond the viewport, but with a larger one: rows outside of it are not drawn.
      await page.screenshot({ path: `${folder}/${name}-${look}.png`, fullPage: true, captureBeyondViewport: false });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (wide > 0) problems.push(`${name} ${look}: ${wide} pixels wider than the screen`);
      problems.push(...(await violations(page)).map((violation) => `${name} ${look}: ${violation}`));
    }
    problems.push(...opened.problems.map((problem) => `${look}: ${problem}`));
    await opened.close();
  }
  return problems;
}

/** What the page that is open has cost until its first row, in words. Its files must be small. */
export async function firstPage(page) {
  const paint = await page.evaluate(
    () =>
      new Promise((resolve) => {
        new PerformanceObserver((list) => resolve(list.getEntries()[0].startTime)).observe({
          type: "paint",
          buffered: true,
        });
      }),
  );
  const ready = await page.evaluate(() => performance.now());
  const loaded = await page.evaluate(() =>
    performance
      .getEntries()
      .filter(({ entryType }) => entryType === "navigation" || entryType === "resource")
      .map(({ name, decodedBodySize }) => ({ isData: new URL(name).pathname.startsWith("/api/"), size: decodedBodySize })),
  );
  const sum = (isData) =>
    loaded.filter((one) => one.isData === isData).reduce((bytes, { size }) => bytes + size, 0);
  const files = loaded.filter(({ isData }) => !isData).length;
  if (sum(false) > 100_000) throw new Error(`the first page has ${sum(false)} bytes; it may have 100,000`);
  return (
    `${loaded.length} requests, ${files} of them for files of ${sum(false)} bytes, ${sum(true)} bytes of data, ` +
    `first paint after ${Math.round(paint)} ms, first row before ${Math.round(ready)} ms`
  );
}

/** The address of each page: one object of each kind, and one that is not ready. */
async function pages(page) {
  const rows = await page.$$eval("tbody tr", (rows) =>
    rows.map((row) => {
      const link = row.querySelector("a");
      return { address: link.hash, kind: link.hash.split("/")[2], isReady: row.querySelector(".phase.good") !== null };
    }),
  );
  const found = {
    overview: "#/",
    calls: "#/calls",
    sessions: "#/sessions",
    filtered: "#/?unready=1&sort=-calls",
    missing: "#/object/MCPServer/default/missing",
  };
  for (const { address, kind, isReady } of rows) {
    found[isReady ? kind : "unready"] ??= address;
    if (isReady && SERVERS.includes(kind)) found.try ??= address.replace("object", "try");
  }
  return found;
}

/** Waits until the page shows what it was opened for. */
async function settle(page, name) {
  if (name === "overview") return page.waitForSelector("tbody tr");
  if (name === "try") {
    const first = await page.waitForSelector(".choice li a");
    await first.click();
    return page.waitForSelector(".primary");
  }
  if (SERVERS.includes(name)) return page.waitForSelector(".tool, .problem, .token");
  if (name === "sessions")
    return page.waitForFunction(() => !document.querySelector("main [role=status]")?.textContent.startsWith("Reading"));
  if (name === "missing") return page.waitForSelector(".problem");
  if (name === "calls" || name === "filtered") return page.waitForSelector("#filter");
  return page.waitForSelector(".state");
}

if (import.meta.url === `file://${process.argv[1]}`) {
  const [url, folder] = process.argv.slice(2);
  const browser = await launch();
  const problems = await walk(browser, url, folder);
  await browser.close();
  for (const problem of problems) console.error(problem);
  process.exit(problems.length > 0 ? 1 : 0);
}
