// One browser for a file of tests, and a console and a page for each test.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, openPage } from "../browser.mjs";
import { startFakeConsole } from "../fake-console.mjs";

export { press, shows } from "../steps.mjs";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

/**
 * @param {string} promise
 * @param {{rows?: number, mode?: "local" | "cluster", provider?: string, width?: number, at?: string}} options
 * @param {(fixture: {page: any, console: any, problems: string[]}) => Promise<void>} run
 */
export function browserTest(promise, { at = "#/", ...options }, run) {
  test(promise, { timeout: 60_000 }, async () => {
    const console = await startFakeConsole(options);
    const { page, problems, close } = await openPage(browser, options);
    page.setDefaultTimeout(20_000);
    try {
      await page.goto(console.url);
      if (at !== "#/") {
        await page.waitForSelector("tbody tr");
        await page.evaluate((hash) => (location.hash = hash), at);
      }
      await run({ page, console, problems });
      assert.deepEqual(problems, []);
    } finally {
      await close();
      console.close();
    }
  });
}

/** Enters a text into the field with this label. */
export async function enter(page, label, text) {
  const id = await page.evaluate(
    (label) => [...document.querySelectorAll("label")].find((found) => found.textContent.startsWith(label))?.htmlFor,
    label,
  );
  const field = await page.waitForSelector(`[id="${id}"]`);
  await field.type(text);
}

/** @param {string} server */
export const tryPage = (server, tool) => `#/try/MCPServer/default/${server}/${tool}`;
