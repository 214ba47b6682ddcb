import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch, openPage } from "../browser.mjs";
import { everything, server, startRun } from "../real-run.mjs";
import { walk } from "../walk.mjs";
import { press, shows } from "./fixture.mjs";

let browser, run;
before(async () => {
  browser = await launch();
  run = await startRun(everything());
});
after(async () => {
  await browser.close();
  await run.stop();
});

/** A page of the running console. */
async function opened(use) {
  const { page, problems, close } = await openPage(browser);
  page.setDefaultTimeout(30_000);
  try {
    await page.goto(run.url);
    await shows(page, "tbody tr", "everything");
    await use(page);
    assert.deepEqual(problems, []);
  } finally {
    await close();
  }
}

test("every page of skep run is free of errors and violations", { timeout: 240_000 }, async () => {
  const folder = process.env.SKEP_SCREENSHOTS ? join(process.env.SKEP_SCREENSHOTS, "real") : await mkdtemp(join(tmpdir(), "walk-"));
  assert.deepEqual(await walk(browser, run.url, folder, (line) => process.stdout.write(`# ${line}\n`)), []);
  if (!process.env.SKEP_SCREENSHOTS) await rm(folder, { recursive: true });
});

test("a tool of the reference server is tried, with its progress", { timeout: 90_000 }, () =>
  opened(async (page) => {
    await page.evaluate(() => (location.hash = "#/try/MCPServer/default/everything/trigger-long-running-operation"));
    await page.waitForSelector(".primary");
    await press(page, "Call");
    await shows(page, ".progress", "of 5");
    await shows(page, "section pre", "completed");
  }));

test("a question of the reference server is answered", { timeout: 90_000 }, () =>
  opened(async (page) => {
    await page.evaluate(() => (location.hash = "#/try/MCPServer/default/everything/trigger-elicitation-request"));
    await page.waitForSelector(".primary");
    await press(page, "Call");
    await page.waitForSelector(".notice button");
    await page.evaluate(() => [...document.querySelectorAll(".notice button")].find((button) => button.textContent === "Decline").click());
    await shows(page, "section pre", "declined");
  }));

test("servers that are created, broken and repaired appear as they are", { timeout: 90_000 }, () =>
  opened(async (page) => {
    await run.write(everything() + server("other", "no-such-program"));
    await shows(page, "tbody tr", "other");
    await page.waitForFunction(() => [...document.querySelectorAll("tbody tr")].some((row) => /other/.test(row.textContent) && /Failed/.test(row.textContent)));
    await run.write(everything() + server("other", "skep demo-server"));
    await page.waitForFunction(() => [...document.querySelectorAll("tbody tr")].some((row) => /other/.test(row.textContent) && /Ready/.test(row.textContent)));
    await run.write(everything());
    await page.waitForFunction(() => ![...document.querySelectorAll("tbody tr")].some((row) => /other/.test(row.textContent)));
  }));

test("a call of another client appears in the live calls", { timeout: 90_000 }, () =>
  opened(async (page) => {
    await page.evaluate(() => (location.hash = "#/calls"));
    await shows(page, "tbody tr", "tools/list");
  }));
