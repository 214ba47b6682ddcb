import assert from "node:assert/strict";
import { violations } from "../browser.mjs";
import { browserTest, press, shows } from "./fixture.mjs";

const SESSIONS = "#/sessions";
const rows = (page) =>
  page.$$eval(".sessions tbody tr", (rows) => rows.map((row) => [...row.cells].map((cell) => cell.innerText)));
const ends = (console) => console.requests.filter((request) => request.startsWith("DELETE"));

/** Presses the button in the row with this text. */
const pressIn = (page, table, text, label) =>
  page.evaluate(
    (table, text, label) => {
      const row = [...document.querySelectorAll(`${table} tbody tr`)].find((found) => found.textContent.includes(text));
      [...row.querySelectorAll("button")].find((button) => button.textContent === label).click();
    },
    table,
    text,
    label,
  );

browserTest("sessions of all servers are shown, with their user, client and server", { at: SESSIONS }, async ({ page }) => {
  await shows(page, "main [role=status]", "4 sessions");
  const shown = await rows(page);
  assert.deepEqual(
    shown.map(([user, client, server]) => [user.split("\n")[0], client.split("\n")[0], server]).slice(0, 2),
    [
      ["ann@example.test", "Notes", "default/demo"],
      ["ann@example.test", "Notes", "default/everything"],
    ],
  );
  // A server whose sessions the user may list and not end has no button.
  assert.deepEqual(shown.map((cells) => cells.at(-1)), ["", "End", "End", "End"]);
  assert.deepEqual(await violations(page), []);
});

browserTest("a user who may not see sessions is told why, and which", { at: SESSIONS }, async ({ page, console }) => {
  await shows(page, ".problem", "You may not see the sessions of visitors/hostile. That needs the right to get");
  const [server] = console.authServers.servers;
  console.authServers = { isAvailable: true, servers: [{ ...server, mayList: false, mayEnd: false }] };
  await page.reload();
  await shows(page, ".problem", "You may not see the sessions of default/everything.");
  assert.equal(await page.$(".sessions:not([hidden])"), null);
  assert.ok(!(await page.$eval("main", (main) => main.textContent)).includes("no such sessions"));
  console.authServers = { isAvailable: true, servers: [] };
  await page.reload();
  await shows(page, "main [role=status]", "No server that you may see has an authorization server.");
  console.authServers = { isAvailable: false, servers: [] };
  await page.reload();
  await shows(page, "main [role=status]", "kubectl skep sessions does it anywhere.");
});

browserTest("a session ends once its end is confirmed", { at: SESSIONS }, async ({ page, console }) => {
  await shows(page, "main [role=status]", "4 sessions");
  await pressIn(page, ".sessions", "c-2", "End");
  await shows(page, ".notice", "End the session of ann@example.test with c-2 at default/everything?");
  assert.deepEqual(await violations(page), []);
  await press(page, "Cancel");
  assert.equal(await page.$(".notice"), null);
  assert.deepEqual(ends(console), []);
  await pressIn(page, ".sessions", "c-2", "End");
  await press(page, "End it");
  await shows(page, "main [role=status]", "1 session has ended. 3 sessions");
  assert.deepEqual(ends(console), ["DELETE /api/sessions/VirtualMCPServer/default/everything?session=s-2"]);
});

browserTest("all sessions of a user end where the viewer may end them", { at: SESSIONS }, async ({ page, console }) => {
  await shows(page, "main [role=status]", "4 sessions");
  await page.click(".sessions .of-user a");
  await shows(page, "main [role=status]", "3 sessions");
  assert.equal(await page.$eval("#filter", (input) => input.value), "ann@example.test");
  await press(page, "End all of these");
  await shows(page, ".notice", "End all sessions of the user ann@example.test at default/everything?");
  await press(page, "End them");
  await shows(page, "main [role=status]", "2 sessions have ended. 1 session");
  assert.deepEqual(ends(console), ["DELETE /api/sessions/VirtualMCPServer/default/everything?user=ann%40example.test"]);
  assert.deepEqual(console.sessions.everything.map(({ id }) => id), ["s-3"]);
});

browserTest("a client is forgotten with its sessions", { at: SESSIONS }, async ({ page, console }) => {
  await shows(page, "main [role=status]", "4 sessions");
  await page.click(".raw summary");
  await shows(page, ".clients td", "http://127.0.0.1:7777/callback");
  await pressIn(page, ".clients", "default/everything", "Forget");
  await shows(page, ".notice", "Forget the client Notes at default/everything?");
  await press(page, "Forget it");
  await shows(page, "main [role=status]", "1 session has ended. 3 sessions");
  assert.deepEqual(ends(console), ["DELETE /api/clients/VirtualMCPServer/default/everything?client=c-1"]);
});

browserTest("a server that does not respond hides no sessions of others", { at: "#/" }, async (fixture) => {
  const { page, console, problems } = fixture;
  await page.waitForSelector("tbody tr");
  console.failing = "everything";
  await page.evaluate(() => (location.hash = "#/sessions"));
  await shows(page, ".problem", "default/everything: a pod of the server does not respond");
  await shows(page, "main [role=status]", "1 session");
  assert.match(problems.splice(0).join("\n"), /^console: .* 502 .*everything$/);
});

browserTest("hostile names of users and clients are texts", { at: SESSIONS }, async ({ page }) => {
  await shows(page, ".sessions td", "<img src=x");
  assert.equal(await page.$$eval("main img, main script", (found) => found.length), 0);
  await pressIn(page, ".sessions", "<img", "End");
  await shows(page, ".notice", "⟨U+202E⟩");
  assert.equal(await page.$$eval("main img, main script", (found) => found.length), 0);
});
