import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { launch } from "../browser.mjs";
import { startFakeConsole } from "../fake-console.mjs";
import { walk } from "../walk.mjs";

test("every page is free of errors and violations, in light, dark and on a phone", { timeout: 240_000 }, async () => {
  const kept = process.env.SKEP_SCREENSHOTS;
  const folder = kept || (await mkdtemp(join(tmpdir(), "walk-")));
  const console = await startFakeConsole();
  const browser = await launch();
  try {
    assert.deepEqual(await walk(browser, console.url, folder, (line) => process.stdout.write(`# ${line}\n`)), []);
  } finally {
    await browser.close();
    console.close();
    if (!kept) await rm(folder, { recursive: true });
  }
});
