import assert from "node:assert/strict";
import { violations } from "../browser.mjs";
import { browserTest, press, shows } from "./fixture.mjs";

browserTest(
  "a console in a cluster asks for a token, reports a wrong one, and signs out",
  { mode: "cluster" },
  async ({ page }) => {
    await page.waitForSelector("#token");
    assert.deepEqual(await violations(page), []);
    if (process.env.SKEP_SCREENSHOTS) await page.screenshot({ path: `${process.env.SKEP_SCREENSHOTS}/sign-in.png` });
    await page.type("#token", "bad");
    await press(page, "Sign in");
    await shows(page, ".fault", "the token is not valid");
    await page.$eval("#token", (area) => (area.value = "good"));
    await press(page, "Sign in");
    await page.waitForSelector("tbody tr");
    await shows(page, "#account", "alice");
    await page.click("#account button");
    await page.waitForSelector("#token");
  },
);

browserTest(
  "a user logs in at a provider, comes back to the same page, and reads why a login failed",
  { mode: "cluster", provider: "idp.example" },
  async ({ page, console }) => {
    await page.waitForSelector("#token");
    assert.deepEqual(await violations(page), []);
    if (process.env.SKEP_SCREENSHOTS) await page.screenshot({ path: `${process.env.SKEP_SCREENSHOTS}/login.png` });
    console.user = "mallory";
    await press(page, "Log in at idp.example");
    await shows(page, "#login-fault", "The provider has refused the login");
    assert.equal(await page.evaluate(() => location.hash), "", "the reason is not in the address any more");
    await page.evaluate(() => (location.hash = "#/object/MCPServer/default/demo"));
    console.user = "alice";
    await press(page, "Log in at idp.example");
    await shows(page, "#account", "alice");
    await page.waitForSelector(".state");
    assert.equal(await page.evaluate(() => location.hash), "#/object/MCPServer/default/demo");
  },
);

browserTest(
  "a link with the session or the token of another user signs nobody in at a console in a cluster",
  { mode: "cluster", provider: "idp.example" },
  async ({ page, console }) => {
    await page.waitForSelector("#token");
    console.isSignedIn = true;
    const links = ["#token=skep-session-of-alice", "#token=skep-session-of-alice&state=of-mallory", "#token=eyJ.of.mallory"];
    const isRefused = async (link) => {
      const before = console.requests.length;
      await page.goto(`${console.origin}/${link}`);
      await page.waitForFunction(() => location.hash === "#/");
      await page.waitForSelector("#token");
      assert.ok(console.requests.length > before);
      assert.equal(await page.evaluate(() => sessionStorage.getItem("skep.token")), "");
    };
    for (const link of links) {
      await isRefused(link);
      await page.goto("about:blank");
    }
    // Nor while a login of this tab goes on, which the user has given up.
    await page.goto(`${console.origin}/`);
    await page.waitForSelector("#token");
    await page.evaluate(() => sessionStorage.setItem("skep.login", "of-alice"));
    for (const link of links) {
      await isRefused(link);
      await page.evaluate(() => sessionStorage.setItem("skep.login", "of-alice"));
    }
  },
);

for (const mode of ["local", "cluster"]) {
  browserTest(`a link with another token does not replace what signs a tab in (${mode})`, { mode }, async (fixture) => {
    const { page, console } = fixture;
    if (mode === "cluster") {
      await page.waitForSelector("#token");
      await page.$eval("#token", (area) => (area.value = "good"));
      await press(page, "Sign in");
    }
    await page.waitForSelector("tbody tr");
    const token = () => page.evaluate(() => sessionStorage.getItem("skep.token"));
    const before = await token();
    await page.goto(`${console.origin}/#token=skep-session-of-mallory&state=x`);
    await page.waitForFunction(() => location.hash === "#/");
    await page.waitForSelector("tbody tr");
    assert.ok(before);
    assert.equal(await token(), before);
  });
}

browserTest("a session that ends leads to the sign-in", { mode: "cluster" }, async ({ page, console }) => {
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

browserTest(
  "a link opens in a new tab without a sign-in",
  { at: "#/object/MCPServer/default/demo" },
  async ({ page, console }) => {
    await page.waitForSelector(".tool");
    const other = await page.browserContext().newPage();
    await other.goto(`${console.origin}/${await page.evaluate(() => location.hash)}`);
    await other.waitForSelector(".tool");
  },
);

browserTest(
  "a console that was started again is shown by all tabs once its address is opened",
  {},
  async ({ page, console }) => {
    await shows(page, "#connection", "live");
    console.token = "of-the-next-run";
    for (const { response } of console.streams) response.end();
    await shows(page, "h1", "Sign in");
    const other = await page.browserContext().newPage();
    await other.goto(`${console.origin}/#token=of-the-next-run`);
    await other.waitForSelector("tbody tr");
    await page.bringToFront();
    await page.waitForSelector("tbody tr");
  },
);

browserTest("the page works by keyboard: skip link, filter, rows, and back", {}, async ({ page }) => {
  await page.waitForSelector("tbody tr");
  const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.textContent);
  await page.keyboard.press("Tab");
  assert.equal(await focused(), "skip");
  await page.keyboard.press("Enter");
  assert.equal(await focused(), "main");
  assert.equal(await page.evaluate(() => location.hash), "#/");
  await page.keyboard.press("/");
  assert.equal(await focused(), "filter");
  await page.keyboard.type("demo");
  await page.waitForFunction(() => document.querySelectorAll("table:first-of-type tbody tr").length === 1);
  while ((await focused()) !== "demo") await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".state");
  assert.equal(await focused(), "demo", "the heading of the new page");
  await page.goBack();
  await page.waitForFunction(() => document.querySelector("#filter")?.value === "demo");
});

for (const path of ["/js/pages/overview.js", "/style.css", "/api/session", "/js/pages/object.js"]) {
  browserTest(`the page is loaded again if ${path} does not arrive`, {}, async ({ page, console, problems }) => {
    await page.waitForSelector("tbody tr");
    await page.goto("about:blank");
    console.lost.add(path).add("/health");
    const isNoticed = page.waitForRequest((request) => request.url().endsWith("/health"));
    await page.goto(`${console.origin}/#/object/MCPServer/default/demo`);
    await isNoticed;
    const isStyled = () => page.evaluate(() => getComputedStyle(document.body).margin === "0px");
    if (path === "/style.css") assert.equal(await isStyled(), false);
    else await shows(page, "main", "The console does not respond");
    console.lost.clear();
    await page.waitForFunction(() => performance.getEntriesByType("navigation")[0]?.type === "reload");
    await page.waitForSelector(".tool");
    assert.ok(await isStyled());
    assert.match(problems.join("\n"), new RegExp(`ERR_EMPTY_RESPONSE .*${path}`));
    problems.length = 0;
  });
}

browserTest("a file that never arrives does not make the page load itself again and again", {}, async (fixture) => {
  const { page, console, problems } = fixture;
  await page.waitForSelector("tbody tr");
  await page.goto("about:blank");
  const loads = () => console.requests.filter((request) => request === "GET /").length;
  const before = loads();
  console.lost.add("/js/pages/overview.js");
  await page.goto(`${console.origin}/`);
  await page.waitForFunction(() => performance.getEntriesByType("navigation")[0]?.type === "reload");
  await shows(page, "main", "The console does not respond");
  await new Promise((resolve) => setTimeout(resolve, 4000));
  assert.equal(loads() - before, 2, "once, and once again");
  problems.length = 0;
});
