// Chromium with a page, and what went wrong on it.

import { createRequire } from "node:module";

const MODULES = process.env.SKEP_BROWSER_MODULES;
const PROGRAM = process.env.SKEP_CHROMIUM;
if (!MODULES || !PROGRAM) throw new Error("start the tests with crates/console/tests/browser/run");

export const modules = createRequire(`${MODULES}/`);
const puppeteer = modules("puppeteer-core");

export function launch() {
  // The sandbox of Chromium does not work for root. It only opens pages of this repository here.
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return puppeteer.launch({
    executablePath: PROGRAM,
    args: [...args, "--disable-gpu", "--force-color-profile=srgb"],
    userDataDir: undefined,
  });
}

/**
 * A page of its own storage, with a list of its problems: errors, failed requests, violations of the content security policy.
 * @param {any} browser
 */
export async function openPage(browser, { width = 1280, height = 900, scheme = "light" } = {}) {
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  await page.setViewport({ width, height });
  await page.emulateMediaFeatures([
    { name: "prefers-color-scheme", value: scheme },
    { name: "prefers-reduced-motion", value: "reduce" },
  ]);
  /** @type {string[]} */
  const problems = [];
  page.on("console", (message) => {
    // Chromium reports every 4xx response as an error; tests of these assert what the page shows.
    if (message.type() !== "error" || /status of 4\d\d/.test(message.text())) return;
    problems.push(`console: ${message.text()} ${message.location().url ?? ""}`);
  });
  page.on("pageerror", (error) => problems.push(`error: ${error}`));
  page.on("dialog", (dialog) => (problems.push(`dialog: ${dialog.message()}`), dialog.dismiss()));
  return { page, problems, close: () => context.close() };
}

/**
 * Serious and critical violations that axe finds.
 * @param {any} page
 */
export async function violations(page) {
  // By the protocol of the developer tools: the content security policy of the page stays as it is.
  await page.evaluate(modules("axe-core").source);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(
      ({ id, nodes }) =>
        `${id}: ${nodes
          .slice(0, 3)
          .map((node) => `${node.target.join(" ")} (${node.failureSummary})`)
          .join("; ")}`,
    );
}
