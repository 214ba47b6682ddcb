import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { after, before, test } from "node:test";
import { launch, openPage, violations } from "../../../console/tests/browser/browser.mjs";
import { newClient, startServers } from "./servers.mjs";

const LOOKS = {
  light: { scheme: "light" },
  dark: { scheme: "dark" },
  phone: { scheme: "light", width: 320, height: 640 },
};

let browser, servers;
before(async () => {
  browser = await launch();
  servers = await startServers();
});
after(async () => {
  await browser.close();
  await servers.stop();
});

/** A page with cookies of its own, and no problem on it at the end. */
async function visit(use, look = "light") {
  const { page, problems, close } = await openPage(browser, LOOKS[look]);
  page.setDefaultTimeout(20_000);
  try {
    await use(page);
    // The provider's own page loads a font. Our pages could not: their policy would report it.
    const own = problems.filter((problem) => !problem.includes("net::ERR_"));
    assert.deepEqual(own, []);
  } finally {
    await close();
  }
}

/** A page of ours looks right: it fits, it is accessible, it needs no script. */
async function inspect(page, name, look = "light") {
  assert.ok(page.url().startsWith(servers.origin), page.url());
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), 0, "it is wider than the screen");
  assert.equal(await page.$("script"), null);
  assert.deepEqual(await violations(page), []);
  if (!process.env.SKEP_SCREENSHOTS) return;
  await mkdir(process.env.SKEP_SCREENSHOTS, { recursive: true });
  await page.screenshot({ path: `${process.env.SKEP_SCREENSHOTS}/${name}-${look}.png`, fullPage: true });
}

/** Presses a button, and waits for the page that follows. */
async function press(page, selector) {
  await Promise.all([page.waitForNavigation(), page.click(selector)]);
}

/** Logs in at every provider until the browser is elsewhere. */
async function logIn(page, user = "ann") {
  while (page.url().startsWith(servers.provider)) {
    if (await page.$("input[name=login]")) {
      await page.type("input[name=login]", user);
      await page.type("input[name=password]", "any");
    }
    await press(page, "button[type=submit]");
  }
}

const parameters = (page) => Object.fromEntries(new URL(page.url()).searchParams);

test("a user approves a client, logs in at two providers, and is sent back with a code", { timeout: 120_000 }, async () => {
  const client = await newClient(servers, "Notes");
  for (const look of Object.keys(LOOKS)) {
    await visit(async (page) => {
      await page.goto(client.url);
      await inspect(page, "consent", look);
      const text = await page.$eval("main", (main) => main.innerText);
      for (const known of ["Notes", "a program on this computer", servers.redirectUri, "company", "calendar"]) {
        assert.ok(text.includes(known), `${known} is not on the page: ${text}`);
      }
      await press(page, "button[value=allow]");
      await logIn(page);
      const { code, state, iss } = parameters(page);
      assert.deepEqual([state, iss], ["of-the-client", servers.origin]);
      assert.ok((await client.token(code)).startsWith("ey"));
      // This browser knows the approval.
      await page.goto(client.url);
      assert.ok(page.url().startsWith(servers.provider), page.url());
    }, look);
  }
});

test("no script is needed", { timeout: 60_000 }, async () => {
  const client = await newClient(servers, "Without script");
  await visit(async (page) => {
    await page.setJavaScriptEnabled(false);
    await page.goto(client.url);
    await press(page, "button[value=allow]");
    await logIn(page);
    assert.ok((await client.token(parameters(page).code)).startsWith("ey"));
  });
});

test("a user denies a client, which learns just that", { timeout: 60_000 }, async () => {
  const client = await newClient(servers, "Denied");
  await visit(async (page) => {
    await page.goto(client.url);
    await press(page, "button[value=deny]");
    const { error, code, iss } = parameters(page);
    assert.deepEqual([error, code, iss], ["access_denied", undefined, servers.origin]);
  });
});

test("a login that is continued in another browser is refused with a page, and goes on in its own", { timeout: 60_000 }, async () => {
  const client = await newClient(servers, "Attacked");
  await visit(async (own) => {
    await own.goto(client.url);
    await press(own, "button[value=allow]");
    // The way back from the provider is cut off here, and taken in the other browser.
    let back;
    await own.setRequestInterception(true);
    own.on("request", (request) => {
      if (!back && request.url().startsWith(`${servers.origin}/oauth/callback`)) {
        back = request.url();
        request.respond({ status: 200, contentType: "text/plain", body: "cut off" });
      } else {
        request.continue();
      }
    });
    await logIn(own);
    for (const look of ["light", "phone"]) {
      await visit(async (other) => {
        const response = await other.goto(back);
        assert.equal(response.status(), 400);
        await inspect(other, "other-browser", look);
        assert.match(await other.$eval("main", (main) => main.innerText), /start again/);
      }, look);
    }
    await own.goto(back);
    await logIn(own);
    assert.ok((await client.token(parameters(own).code)).startsWith("ey"));
  });
});

test("an unknown client is refused with a page", { timeout: 60_000 }, () =>
  visit(async (page) => {
    const response = await page.goto(`${servers.origin}/oauth/authorize?client_id=unknown`);
    assert.equal(response.status(), 401);
    await inspect(page, "unknown-client");
  }));

test("a user sees, ends and renews the connections of a session", { timeout: 120_000 }, async () => {
  const client = await newClient(servers, "Connected");
  await visit(async (page) => {
    await page.goto(client.url);
    await press(page, "button[value=allow]");
    await logIn(page);
    const token = await client.token(parameters(page).code);
    const listed = await fetch(`${servers.origin}/oauth/connections`, { headers: { authorization: `Bearer ${token}` } });
    const { page: address } = await listed.json();
    const states = () => page.$$eval("section", (all) => all.map((one) => one.innerText.split("\n").filter(Boolean).slice(0, 3).join(" ")));
    await page.goto(address);
    await logIn(page);
    await inspect(page, "connections");
    assert.match((await states()).join("; "), /^company .*connected; calendar .*connected$/i);
    await press(page, "section:nth-of-type(2) button[value=disconnect]");
    assert.match((await states())[1], /not connected/i);
    for (const [look, { width = 1280, height = 900, scheme }] of Object.entries(LOOKS)) {
      await page.setViewport({ width, height });
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      await inspect(page, "disconnected", look);
    }
    await page.setViewport({ width: 1280, height: 900 });
    await press(page, "section:nth-of-type(2) button[value=connect]");
    await logIn(page);
    assert.doesNotMatch((await states())[1], /not connected/i);
  });
});

test("a user logs in without a client, sees all sessions, and ends one", { timeout: 120_000 }, async () => {
  const logInWith = async (name) => {
    const client = await newClient(servers, name);
    let token;
    await visit(async (page) => {
      await page.goto(client.url);
      await press(page, "button[value=allow]");
      await logIn(page, "eve");
      token = await client.token(parameters(page).code);
    });
    return token;
  };
  const accepted = async (token) =>
    (await fetch(`${servers.origin}/oauth/connections`, { headers: { authorization: `Bearer ${token}` } })).status;
  const [first, second] = [await logInWith("Kept"), await logInWith("Ended")];
  await visit(async (page) => {
    const sessions = () => page.$$eval("section h2", (all) => all.map((one) => one.textContent));
    await page.goto(`${servers.origin}/oauth/connections`);
    await logIn(page, "eve");
    assert.equal(page.url(), `${servers.origin}/oauth/connections`);
    assert.deepEqual((await sessions()).sort(), ["Ended", "Kept"]);
    const text = await page.$eval("main", (main) => main.innerText);
    assert.match(text, /company\s+connected since \d{4}-\d\d-\d\d, until \d{4}-\d\d-\d\d \d\d:\d\d UTC, then renewed/);
    for (const [look, { width = 1280, height = 900, scheme }] of Object.entries(LOOKS)) {
      await page.setViewport({ width, height });
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      await inspect(page, "sessions", look);
    }
    await page.setViewport({ width: 1280, height: 900 });
    const ended = (await sessions()).indexOf("Ended") + 1;
    // Its own page has the providers, and leads back.
    await press(page, `section:nth-of-type(${ended}) a.button`);
    assert.match(page.url(), /\?session=/);
    await inspect(page, "session");
    await press(page, "form.last a.button");
    await press(page, `section:nth-of-type(${ended}) button[value=end]`);
    assert.deepEqual(await sessions(), ["Kept"]);
    assert.deepEqual([await accepted(first), await accepted(second)], [200, 401]);
    await press(page, "button[value=end]");
    assert.match(await page.$eval("main", (main) => main.innerText), /No application acts for you/);
    await inspect(page, "no-sessions");
  });
});

test("the console shows which users are connected, as it changes, and no token", { timeout: 120_000 }, async () => {
  const client = await newClient(servers, "Watched");
  let token;
  await visit(async (page) => {
    await page.goto(client.url);
    await press(page, "button[value=allow]");
    await logIn(page);
    token = await client.token(parameters(page).code);
  });
  const { sub } = JSON.parse(Buffer.from(token.split(".")[1], "base64url").toString());
  const rows = (page) =>
    page.$$eval(".connections tbody tr", (rows) => rows.map((row) => [...row.cells].slice(0, 3).map((cell) => cell.textContent)));
  for (const look of Object.keys(LOOKS)) {
    await visit(async (page) => {
      await page.goto(servers.console);
      await page.waitForSelector("tbody tr");
      await page.evaluate(() => (location.hash = "#/object/VirtualMCPServer/default/joined"));
      await page.waitForSelector(".connections");
      const before = await rows(page);
      for (const provider of ["company", "calendar"]) {
        const found = before.filter(([user, name, account]) => user === sub && name === provider && account === "ann");
        assert.ok(found.length > 0, `${provider} in ${JSON.stringify(before)}`);
      }
      assert.deepEqual(await violations(page), []);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), 0, "it is wider than the screen");
      const text = await page.content();
      assert.ok(!text.includes(token) && !text.includes(token.split(".")[2]));
      if (process.env.SKEP_SCREENSHOTS) {
        await mkdir(process.env.SKEP_SCREENSHOTS, { recursive: true });
        const path = `${process.env.SKEP_SCREENSHOTS}/console-connections-${look}.png`;
        // Not beyond the viewport, but with a larger one: rows outside of it are not drawn.
        await page.screenshot({ path, fullPage: true, captureBeyondViewport: false });
      }
    }, look);
  }
  await visit(async (page) => {
    await page.goto(servers.console);
    await page.waitForSelector("tbody tr");
    await page.evaluate(() => (location.hash = "#/object/VirtualMCPServer/default/joined"));
    await page.waitForSelector(".connections");
    const before = (await rows(page)).length;
    const options = { method: "DELETE", headers: { authorization: `Bearer ${token}` } };
    const ended = await fetch(`${servers.origin}/oauth/connections?provider=calendar`, options);
    assert.equal(ended.status, 204);
    await page.waitForFunction((count) => document.querySelectorAll(".connections tbody tr").length === count, {}, before - 1);
  });
});
