import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { appears, watchRows } from "../appears.mjs";
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

test("servers that are created, broken and corrected appear within a second of the event", { timeout: 180_000 }, () =>
  opened(async (page) => {
    const rows = await watchRows(page);
    const say = (line) => process.stdout.write(`# ${line}\n`);
    // skep run prints a line for each event.
    const has = (phase) => (line) => new RegExp(`^other\\s.*\\b${phase}\\b`).test(line);
    const row = (phase) => (texts) => texts.some((text) => text.includes("other") && text.includes(phase));
    const happens = (what, manifests, phase) =>
      appears(what, { events: run.events, rows, say }, () => run.write(manifests), has(phase), row(phase));
    await happens("a server that is created", everything() + server("other", "skep demo-server"), "Ready");
    await happens("a server that is broken", everything() + server("other", "false"), "Failed");
    await happens("a server that is corrected", everything() + server("other", "skep demo-server"), "Ready");
    await run.write(everything());
    await page.waitForFunction(() => ![...document.querySelectorAll("tbody tr")].some((row) => /other/.test(row.textContent)));
  }));

/** Sends a message to a server as a client that has nothing to do with the console. */
async function send(address, session, message) {
  const response = await fetch(address, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      ...(session && { "Mcp-Session-Id": session }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", ...message }),
  });
  assert.ok(response.ok, `${message.method}: ${response.status}`);
  return { session: response.headers.get("mcp-session-id"), body: await response.text() };
}

test("a call of another client appears in the live calls", { timeout: 90_000 }, () =>
  opened(async (page) => {
    await page.evaluate(() => (location.hash = "#/calls"));
    await page.waitForSelector("#filter");
    const isShown = () => page.$$eval("tbody tr", (rows) => rows.some((row) => /tools\/call.*echo/.test(row.textContent)));
    assert.equal(await isShown(), false, "the console itself calls no such tool");
    const address = run.address("everything");
    const clientInfo = { name: "another", version: "1" };
    const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo };
    const { session } = await send(address, null, { id: 1, method: "initialize", params });
    await send(address, session, { method: "notifications/initialized" });
    const { body } = await send(address, session, { id: 2, method: "tools/call", params: { name: "echo", arguments: { message: "hello there" } } });
    assert.match(body, /hello there/);
    await page.waitForFunction(() => [...document.querySelectorAll("tbody tr")].some((row) => /tools\/call.*echo/.test(row.textContent)));
    const text = await page.evaluate(() => document.body.textContent);
    assert.ok(!text.includes("hello there"), "arguments and results are not recorded");
  }));
