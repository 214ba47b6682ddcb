import assert from "node:assert/strict";
import { violations } from "../browser.mjs";
import { browserTest, enter, press, shows, tryPage } from "./fixture.mjs";

browserTest("a form made of the schema calls a tool", { at: tryPage("demo", "add") }, async ({ page, console }) => {
  await page.waitForSelector(".primary");
  await press(page, "Call");
  await shows(page, ".fault", "required");
  await enter(page, "a required", "1.5");
  await enter(page, "unit", "cm");
  await page.evaluate(() => document.querySelector('.box input[value="1"]').click());
  await press(page, "Call");
  const { params } = await console.mcp.message(({ method }) => method === "tools/call");
  assert.deepEqual(params.arguments, { a: 1.5, b: 2, mode: "exact", tags: ["green"], options: { unit: "cm" } });
  await shows(page, "section pre", '"sum": 3');
});

browserTest(
  "arguments can be written as JSON, and move between form and text",
  { at: tryPage("demo", "echo") },
  async ({ page }) => {
    await page.waitForSelector(".primary");
    await enter(page, "text required", "hello");
    await press(page, "Write JSON");
    assert.equal(await page.$eval("#arguments", (area) => area.value), '{\n  "text": "hello"\n}');
    await page.$eval("#arguments", (area) => (area.value = '{"text": '));
    await press(page, "Call");
    await shows(page, ".fault", "Not JSON");
    await page.$eval("#arguments", (area) => (area.value = '{"text": "raw"}'));
    await press(page, "Write JSON");
    await press(page, "Call");
    await shows(page, "section pre", "echo: raw");
  },
);

browserTest(
  "progress and log messages are shown, and a call can be cancelled",
  { at: tryPage("demo", "slow") },
  async ({ page, console }) => {
    await page.waitForSelector(".primary");
    await press(page, "Call");
    await shows(page, ".progress", "3 of 10 three of ten");
    assert.equal(await page.$eval("progress", (bar) => bar.position), 0.3);
    await shows(page, ".log li", "still working");
    await press(page, "Cancel");
    const called = await console.mcp.message(({ method }) => method === "tools/call");
    const cancelled = await console.mcp.message(({ method }) => method === "notifications/cancelled");
    assert.equal(cancelled.params.requestId, called.id);
    await shows(page, ".problem", "cancelled");
  },
);

browserTest("a question ends with the call that it belongs to", { at: tryPage("demo", "ask") }, async ({ page }) => {
  await page.waitForSelector(".primary");
  await press(page, "Call");
  await shows(page, ".notice", "Who are you?");
  await page.click(".actions button:nth-child(2)");
  await page.waitForFunction(() => document.querySelector(".notice") === null);
});

for (const [label, expected] of [
  ["Accept", { action: "accept", content: { name: "Alice", colour: "g" } }],
  ["Decline", { action: "decline" }],
  ["Cancel", { action: "cancel" }],
]) {
  browserTest(`a question of the server is answered: ${label}`, { at: tryPage("demo", "ask") }, async ({ page }) => {
    await page.waitForSelector(".primary");
    await press(page, "Call");
    await shows(page, ".notice", "Who are you?");
    assert.deepEqual(await violations(page), []);
    await enter(page, "Your name", "Alice");
    await page.select(".notice select", "1");
    await page.evaluate(
      (label) => [...document.querySelectorAll(".notice button")].find((button) => button.textContent === label).click(),
      label,
    );
    await shows(page, "section pre", JSON.stringify(expected));
  });
}

browserTest(
  "an image is shown, and one that could contain script is only saved",
  { at: tryPage("demo", "picture") },
  async ({ page }) => {
    await page.waitForSelector(".primary");
    await press(page, "Call");
    await page.waitForFunction(() => document.querySelector("figure img")?.naturalWidth === 1);
    assert.equal(await page.$$eval("main img", (images) => images.length), 1);
    await shows(page, "button", "image/svg+xml");
  },
);

browserTest("a long text is truncated until all of it is wanted", { at: tryPage("demo", "long") }, async ({ page }) => {
  await page.waitForSelector(".primary");
  await press(page, "Call");
  await shows(page, ".truncated button", "Show all 5.0 million characters");
  assert.ok((await page.$eval("section pre", (pre) => pre.textContent.length)) < 30_000);
  await press(page, "Show all 5.0 million characters");
  await page.waitForFunction(() => document.querySelector("section pre").textContent.length === 5_000_000);
});

browserTest("a hostile tool is a text, with its result", { at: tryPage("demo", "hostile") }, async ({ page }) => {
  await page.waitForSelector(".primary");
  await press(page, "Call");
  await shows(page, "section .phase.bad", "The tool failed");
  await shows(page, "section pre", "<img src=x");
  assert.equal(await page.$$eval("main img", (images) => images.length), 0);
});

browserTest(
  "a server that wants an access token gets it, and the page keeps it in memory only",
  { at: tryPage("protected", "echo") },
  async ({ page }) => {
    await shows(page, ".token", "the token is missing");
    await page.type("#access-token", "opensesame");
    await press(page, "Connect");
    await page.waitForSelector(".choice li a");
    const stored = await page.evaluate(() =>
      JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href]),
    );
    assert.ok(!stored.includes("opensesame"), stored);
  },
);

browserTest("every message of the session can be read", { at: tryPage("demo", "echo") }, async ({ page }) => {
  await page.waitForSelector(".primary");
  await page.click(".raw summary");
  await shows(page, ".messages summary", "initialize");
  await shows(page, ".messages pre", '"nextCursor": "3"');
});

browserTest("a session that the server lost is opened again", { at: tryPage("demo", "echo") }, async ({ page, console }) => {
  await page.waitForSelector(".primary");
  console.mcp.lost = console.mcp.sessions;
  await enter(page, "text required", "again");
  await press(page, "Call");
  await shows(page, "section pre", "echo: again");
});
