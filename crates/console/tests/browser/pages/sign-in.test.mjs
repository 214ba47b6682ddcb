import assert from "node:assert/strict";
import { browserTest, press, shows } from "./fixture.mjs";

browserTest("a console in a cluster asks for a token, reports a wrong one, and signs out", { mode: "cluster" }, async ({ page }) => {
  await page.waitForSelector("#token");
  await page.type("#token", "bad");
  await press(page, "Sign in");
  await shows(page, ".fault", "the token is not valid");
  await page.$eval("#token", (area) => (area.value = "good"));
  await press(page, "Sign in");
  await page.waitForSelector("tbody tr");
  await shows(page, "#account", "alice");
  await page.click("#account button");
  await page.waitForSelector("#token");
});

browserTest("a session that ends leads to the sign-in", { mode: "cluster" }, async ({ page, console }) => {
  await page.type("#token", "good").catch(() => {});
  await page.waitForSelector("#token");
  await page.$eval("#token", (area) => (area.value = "good"));
  await press(page, "Sign in");
  await shows(page, "#connection", "live");
  console.isSignedIn = false;
  for (const { response } of console.streams) response.end();
  await page.waitForSelector("#token");
});

browserTest("a local console without its token names where its address is", {}, async ({ page, console }) => {
  await page.waitForSelector("tbody tr");
  await page.evaluate(() => sessionStorage.clear());
  await page.goto("about:blank");
  await page.goto(`${console.origin}/`);
  await shows(page, "main", "Open the address that skep run printed");
  assert.equal(await page.$("#token"), null);
  // The printed address, pasted into the same tab, changes only the fragment.
  await page.goto(console.url);
  await page.waitForSelector("tbody tr");
});
