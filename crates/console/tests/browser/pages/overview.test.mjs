import assert from "node:assert/strict";
import { call, summary, traffic } from "../fake-objects.mjs";
import { firstPage } from "../walk.mjs";
import { browserTest, press, shows } from "./fixture.mjs";

const rows = (page) => page.$$eval("table:not([hidden]) tbody tr", (rows) => rows.length);
const names = (page) => page.$$eval("table:first-of-type td.of-name a", (links) => links.map((link) => link.textContent));

browserTest("the token of the address is neither shown nor part of the history", {}, async ({ page }) => {
  await page.waitForSelector("tbody tr");
  assert.equal(await page.evaluate(() => location.hash), "#/");
  assert.equal(await page.evaluate(() => history.length), 2);
});

browserTest("the first page of a thousand servers is small", { rows: 1000 }, async ({ page }) => {
  await page.waitForSelector("tbody tr");
  process.stdout.write(`# first page of 1,000 servers: ${await firstPage(page)}\n`);
});

browserTest("a thousand rows are kept and patched when all of them change", { rows: 1000 }, async ({ page, console }) => {
  await page.waitForFunction(() => document.querySelectorAll("tbody tr").length >= 1000);
  const first = await page.$("tbody tr");
  const updates = console.objects.slice(0, 1000).map((object, index) => ({ ...object, traffic: traffic(index + 7) }));
  await page.evaluate(() => {
    globalThis.longest = 0;
    new PerformanceObserver((list) =>
      list.getEntries().forEach((entry) => (globalThis.longest = Math.max(globalThis.longest, entry.duration))),
    ).observe({ type: "longtask" });
  });
  const before = await page.metrics();
  for (let second = 0; second < 5; second++) {
    console.emit(
      "traffic",
      updates.map(({ kind, namespace, name }, index) => ({ kind, namespace, name, traffic: traffic(index + second) })),
    );
    for (let n = 0; n < 50; n++)
      console.emit("object", summary({ ...updates[n], message: `event ${second}`, phase: "Pending" }));
  }
  await shows(page, "td.of-name", "event 4");
  const after = await page.metrics();
  // Frames are not asserted: two cores that others share. Rows that are kept are what makes them short.
  assert.ok(await first.evaluate((row) => row.isConnected), "rows are kept");
  const spent = (after.TaskDuration - before.TaskDuration) * 1000;
  process.stdout.write(
    `# 5,250 events for 1,000 rows: ${Math.round(spent)} ms, longest task ${await page.evaluate(() => globalThis.longest)} ms\n`,
  );
  assert.ok(after.Nodes - before.Nodes < 20_000, "rows are not built again");
});

browserTest("events update, add and remove rows", { rows: 5 }, async ({ page, console }) => {
  await page.waitForSelector("tbody tr");
  const before = await rows(page);
  console.emit("object", summary({ name: "brand-new", phase: "Pending", message: "pods are starting" }));
  await shows(page, "td.of-name", "brand-new");
  await shows(page, "td.of-name", "pods are starting");
  console.emit("object", summary({ name: "brand-new", phase: "Ready" }));
  await page.waitForFunction(() =>
    [...document.querySelectorAll("tr")].some(
      (row) => row.textContent.includes("brand-new") && row.querySelector(".phase.good"),
    ),
  );
  console.emit("deleted", summary({ name: "brand-new" }));
  await page.waitForFunction(
    (count) => document.querySelectorAll("table:not([hidden]) tbody tr").length === count,
    {},
    before,
  );
});

browserTest("after a resync the list is read again", { rows: 5 }, async ({ page, console }) => {
  await page.waitForSelector("tbody tr");
  console.objects.push(summary({ name: "missed" }));
  console.emit("resync", {});
  await shows(page, "td.of-name", "missed");
});

browserTest("a stream that ends is opened again", { rows: 5 }, async ({ page, console }) => {
  await shows(page, "#connection", "live");
  console.objects.push(summary({ name: "while-disconnected" }));
  for (const { response } of console.streams) response.end();
  await shows(page, "td.of-name", "while-disconnected");
  await shows(page, "#connection", "live");
});

browserTest(
  "the filter narrows by text, kind and readiness, and its address restores it",
  { rows: 40 },
  async ({ page }) => {
    await page.waitForSelector("tbody tr");
    await page.keyboard.press("/");
    await page.keyboard.type("server-3");
    await page.waitForFunction(() =>
      [...document.querySelectorAll("td.of-name a")].every((link) => link.textContent.startsWith("server-3")),
    );
    await press(page, "Not ready");
    await page.waitForFunction(() => location.hash === "#/?text=server-3&unready=1");
    assert.deepEqual(await names(page), ["server-3", "server-37"]);
    await page.reload();
    await page.waitForSelector("tbody tr");
    assert.deepEqual(await names(page), ["server-3", "server-37"]);
  },
);

browserTest("a column sorts in both directions", { rows: 10 }, async ({ page }) => {
  await page.waitForSelector("tbody tr");
  const sorted = async () =>
    (await page.$$eval("table:first-of-type tbody tr", (rows) => rows.map((row) => row.cells[3].textContent)))
      .filter((text) => text !== "–")
      .map(Number);
  await press(page, "Tools");
  await page.waitForSelector('th[aria-sort="descending"]');
  await page.mouse.move(0, 0);
  assert.deepEqual(
    await sorted(),
    (await sorted()).toSorted((a, b) => b - a),
  );
  await press(page, "Tools");
  await page.waitForSelector('th[aria-sort="ascending"]');
  assert.deepEqual(
    await sorted(),
    (await sorted()).toSorted((a, b) => a - b),
  );
});

browserTest(
  "calls appear on top, at most 500 of them, and wait during a pause",
  { at: "#/calls" },
  async ({ page, console }) => {
    await page.waitForFunction(() => document.querySelector("#filter") !== null);
    await shows(page, "#connection", "live");
    const start = Date.now();
    const at = (n) => new Date(start + n).toISOString();
    for (let n = 0; n < 600; n++) console.emit("call", call(n, { time: at(n), target: `tool-${n}` }));
    await shows(page, "tbody tr:first-child", "tool-599");
    assert.equal(await rows(page), 500);
    await press(page, "Pause");
    console.emit("call", call(700, { time: at(700), target: "during-the-pause" }));
    await shows(page, ".quiet", "1 more since the pause");
    await press(page, "Pause");
    await shows(page, "tbody tr:first-child", "during-the-pause");
    await page.type("#filter", "tool-42 200");
    await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 10);
  },
);
