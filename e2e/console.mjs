// A user with a browser at the console of a cluster.
//
//   node console.mjs '{"kubectl": [PROGRAM, …], "system": NAMESPACE, "users": NAMESPACE, "viewer": TOKEN, "stranger": TOKEN,
//                      "server": {"good": MANIFEST, "broken": MANIFEST}, "joined": MANIFEST, "screenshots": FOLDER or null,
//                      "many": {"count": NUMBER, "server": MANIFEST}}'
//
// SKEP_BROWSER_MODULES and SKEP_CHROMIUM name the browser. It prints how long after each event of the API server the page shows
// it, and fails if that is more than a second.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { appears, Happenings, watchRows } from '../crates/console/tests/browser/appears.mjs';
import { launch, openPage } from '../crates/console/tests/browser/browser.mjs';
import { press, shows } from '../crates/console/tests/browser/steps.mjs';
import { firstPage, walk } from '../crates/console/tests/browser/walk.mjs';

const { kubectl, system, users, viewer, stranger, server, joined, screenshots, many } = JSON.parse(process.argv[2]);
const [program, ...flags] = kubectl;
const PATIENCE = 180_000;

const say = (line) => process.stdout.write(`             ${line}\n`);

function run(args, input = '') {
  const { status, stderr } = spawnSync(program, [...flags, ...args], { input, encoding: 'utf8' });
  assert.equal(status, 0, `kubectl ${args.join(' ')}: ${stderr}`);
}

const apply = (manifest) => run(['apply', '-f', '-'], JSON.stringify(manifest));

/** The events of the API server, as kubectl gets them. */
function watchServers() {
  const events = new Happenings();
  const args = ['get', 'mcpservers', '-n', users, '--watch', '--output-watch-events', '-o', 'json'];
  const watching = spawn(program, [...flags, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  // One line for each.
  createInterface({ input: watching.stdout }).on('line', (line) => events.add(Date.now(), JSON.parse(line)));
  return { events, stop: () => watching.kill() };
}

async function forwarded() {
  const forwarding = spawn(program, [...flags, 'port-forward', '-n', system, 'service/skep-console', ':80'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  // It prints an error for each stream that the page ends.
  const errors = [];
  createInterface({ input: forwarding.stderr }).on('line', (line) => errors.push(line));
  const [data] = await once(forwarding.stdout, 'data');
  const port = /127\.0\.0\.1:(\d+)/.exec(String(data))[1];
  return { url: `http://localhost:${port}/`, errors, stop: () => forwarding.kill() };
}

const signIn = (token) => async (page) => {
  await page.waitForSelector('#token');
  await page.$eval('#token', (field, token) => (field.value = token), token);
  await press(page, 'Sign in');
  await shows(page, '#connection', 'live');
};

const isNamed = ({ object }) => object.metadata.name === server.good.metadata.name;
const hasPhase = (phase) => (event) => isNamed(event) && event.object.status?.phase === phase;
const row = (phase) => (texts) => texts.some((text) => text.includes(server.good.metadata.name) && text.includes(phase));

const console_ = await forwarded();
const { events, stop } = watchServers();
const browser = await launch();
const opened = await openPage(browser);
const { page } = opened;
let isPassed = false;
try {
  page.setDefaultTimeout(PATIENCE);
  await page.goto(console_.url);
  await signIn(viewer)(page);
  await page.waitForSelector('tbody tr');
  const rows = await watchRows(page);
  const has = (what, act, isEvent, isShown) => appears(what, { events, rows, say }, act, isEvent, isShown);
  await has('a server that is created', () => apply(server.good), isNamed, row(''));
  await rows.next('it is ready', row('Ready'));
  await has('a server that is broken', () => apply(server.broken), hasPhase('Failed'), row('Failed'));
  await has('a server that is corrected', () => apply(server.good), hasPhase('Ready'), row('Ready'));

  const place = `MCPServer/${users}/${server.good.metadata.name}`;
  const open = (hash) => page.evaluate((hash) => (location.hash = hash), hash);
  await open(`#/try/${place}/trigger-long-running-operation`);
  await page.waitForSelector('.primary');
  await press(page, 'Call');
  await shows(page, '.progress', 'of 5');
  await shows(page, 'section pre', 'completed');
  say('a tool is tried, with its progress');
  await open(`#/try/${place}/trigger-elicitation-request`);
  await page.waitForSelector('.primary');
  await press(page, 'Call');
  await page.waitForSelector('.notice button');
  await press(page, 'Decline');
  await shows(page, 'section pre', 'declined');
  say('a question of a tool is answered');
  await open('#/calls');
  await shows(page, 'tbody tr', 'trigger-long-running-operation');
  say('the calls of the page itself are among the live calls');

  apply(joined);
  await open(`#/object/VirtualMCPServer/${users}/${joined.metadata.name}`);
  await shows(page, '.routes li', `${server.good.metadata.name}_echo is echo`);
  say('a virtual server shows which tool comes from which backend');
  await shows(page, '.state', 'Ready');

  const folder = screenshots ?? (await mkdtemp(join(tmpdir(), 'walk-')));
  assert.deepEqual(await walk(browser, console_.url, folder, say, signIn(viewer)), []);
  if (!screenshots) await rm(folder, { recursive: true });

  // What is in another namespace is on no page of the viewer, and a stranger sees nothing at all.
  for (const hash of ['#/', '#/calls', `#/object/${place}`]) {
    await open(hash);
    await page.waitForSelector('h1');
    const text = await page.evaluate(() => document.body.textContent);
    assert.ok(!text.includes('theirs') && !text.includes(system), `${hash} shows something of another namespace`);
  }
  const other = await openPage(browser);
  await other.page.goto(console_.url);
  await signIn(stranger)(other.page);
  const seen = await other.page.evaluate(() => document.body.textContent);
  assert.ok(!seen.includes(server.good.metadata.name) && !seen.includes('mine') && !seen.includes('theirs'), seen);
  assert.deepEqual(other.problems, []);

  await page.bringToFront();
  await open('#/');
  await page.waitForSelector('tbody tr');
  await has(
    'a server that is deleted',
    () => run(['delete', 'mcpserver', server.good.metadata.name, '-n', users, '--wait=false']),
    (event) => isNamed(event) && event.type === 'DELETED',
    (texts) => !texts.some((text) => text.includes(server.good.metadata.name)),
  );
  if (many.count > 0) {
    const named = (name) => ({ ...many.server, metadata: { ...many.server.metadata, name } });
    const items = Array.from({ length: many.count }, (_, number) => named(`${many.server.metadata.name}-${number}`));
    apply({ apiVersion: 'v1', kind: 'List', items });
    await open('#/');
    // Until the operator has nothing more to do with them.
    const hasFailed = (count) => document.querySelectorAll('tbody tr .phase.bad').length >= count;
    await page.waitForFunction(hasFailed, {}, many.count);
    // Another tab of the same user: this one has all rows already.
    const tab = await page.browserContext().newPage();
    await tab.goto(console_.url);
    await tab.waitForSelector('tbody tr');
    say(`first page of ${many.count} more servers: ${await firstPage(tab)}`);
    await tab.close();
    run(['delete', '-f', '-', '--wait=false'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  }
  assert.deepEqual(opened.problems, []);
  isPassed = true;
} catch (error) {
  // The browser itself may have ended.
  const text = await page.evaluate(() => document.body.innerText).catch(String);
  say(`the page has ${JSON.stringify(text)}`);
  for (const problem of [...opened.problems, ...console_.errors.slice(-20)]) say(problem);
  throw error;
} finally {
  await browser.close();
  stop();
  console_.stop();
  process.exitCode = isPassed ? 0 : 1;
}
