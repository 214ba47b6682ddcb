// An MCP client with the official SDK.
//
//   node client.mjs SDK '{"url": URL, "transport": TRANSPORT, "act": ACT, …}'
//
// It prints one line of JSON with the result. The acts:
//   echo   calls the echo tool, or `tool`, with a message of `size` bytes; a `patient` client prints when it starts, and retries until
//          it gets a response
//   tools  lists the tools
//   load   calls until its standard input ends, with a session for each call and with one session for all calls
import { setTimeout as sleep } from 'node:timers/promises';

const [sdk, options] = process.argv.slice(2);
const { url, transport, act, size = 16, patient = false, token, tool = 'echo' } = JSON.parse(options);
const part = (name) => import(`${sdk}/@modelcontextprotocol/sdk/dist/esm/client/${name}.js`);
const { Client } = await part('index');
const { SSEClientTransport } = await part('sse');
const { StreamableHTTPClientTransport } = await part('streamableHttp');

// An error names the step that failed.
async function step(name, work) {
  try {
    return await work();
  } catch (error) {
    error.message = `${name}: ${error.message}`;
    throw error;
  }
}

async function connected() {
  const client = new Client({ name: 'skep-e2e', version: '1' });
  const Transport = transport === 'sse' ? SSEClientTransport : StreamableHTTPClientTransport;
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const connection = new Transport(new URL(url), { requestInit: { headers } });
  await step('initialize', () => client.connect(connection));
  return client;
}

async function withClient(work) {
  const client = await connected();
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

async function echoed(client) {
  const message = 'x'.repeat(size);
  const call = () => client.callTool({ name: tool, arguments: { message } });
  const result = await step('tools/call', call);
  const text = result.content[0].text;
  if (text !== `Echo: ${message}`) throw new Error(`the response is ${text.slice(0, 200)}`);
  return { at: Date.now() };
}

// The SDK has the HTTP status, or the JSON-RPC error code, beside the message.
const words = (error) => [error.code, error.message, error.cause?.message].filter(Boolean).join(': ');

// Two clients: one starts a session for each call, one keeps a session until it is lost.
async function load() {
  let ended = false;
  process.stdin.on('end', () => (ended = true)).resume();
  const report = { fresh: { calls: 0, failures: [] }, kept: { calls: 0, failures: [] } };
  const one = async (who, call) => {
    try {
      await call();
      who.calls += 1;
    } catch (error) {
      who.failures.push(`${new Date().toISOString()} ${words(error)}`);
    }
    await sleep(20);
  };
  const fresh = async () => {
    while (!ended) await one(report.fresh, () => withClient(echoed));
  };
  const kept = async () => {
    let client;
    while (!ended) {
      await one(report.kept, async () => {
        try {
          client ??= await connected();
          await echoed(client);
        } catch (error) {
          await client?.close().catch(() => {});
          client = undefined;
          throw error;
        }
      });
    }
    await client?.close();
  };
  await Promise.all([fresh(), kept()]);
  return report;
}

const acts = {
  echo: () => withClient(echoed),
  tools: () => withClient(async (client) => ({ tools: (await client.listTools()).tools.map((tool) => tool.name) })),
  load,
};

if (patient) console.log('waiting');
const end = Date.now() + 170_000;
for (;;) {
  try {
    console.log(JSON.stringify(await acts[act]()));
    process.exit(0);
  } catch (error) {
    if (!patient || Date.now() > end) {
      console.error(words(error));
      process.exit(1);
    }
    await sleep(50);
  }
}
