// An MCP client with the official SDK.
//
//   node client.mjs SDK '{"url": URL, "transport": TRANSPORT, "act": ACT, …}'
//
// It prints one line of JSON with the result. The acts:
//   echo   calls the echo tool, or `tool`, with a message of `size` bytes; a `patient` client prints when it starts, and retries until
//          it gets a response
//   call   calls `tool` with `input`, and prints its text
//   tools  lists the tools
//   load   calls until its standard input ends, with a session for each call and with one session for all calls
//   login  registers, logs Ann in and calls the echo tool; prints that; when its standard input ends, its access token is not accepted any
//          more: it refreshes, and calls again
import { setTimeout as sleep } from 'node:timers/promises';

const [sdk, options] = process.argv.slice(2);
const { url, transport, act, size = 16, patient = false, token, tool = 'echo', input } = JSON.parse(options);
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

async function connected(authProvider) {
  const client = new Client({ name: 'skep-e2e', version: '1' });
  const Transport = transport === 'sse' ? SSEClientTransport : StreamableHTTPClientTransport;
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const connection = new Transport(new URL(url), { requestInit: { headers }, authProvider });
  await step('initialize', () => client.connect(connection));
  return client;
}

async function withClient(work, authProvider) {
  const client = await connected(authProvider);
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

async function called(client) {
  const result = await step('tools/call', () => client.callTool({ name: tool, arguments: input }));
  const text = result.content.map((content) => content.text).join('\n');
  if (result.isError) throw new Error(text);
  return { text };
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

// The client of OAuth is the SDK's own. Its user has a browser.
async function login() {
  const { logIn } = await import('../crates/skep/tests/it/run/judges/browser.mjs');
  const redirectUrl = 'http://127.0.0.1:7777/cb';
  const saved = { registrations: 0, logins: 0 };
  const authProvider = {
    redirectUrl,
    clientMetadata: {
      client_name: 'skep-e2e', redirect_uris: [redirectUrl], token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'], scope: 'openid offline_access',
    },
    clientInformation: () => saved.client,
    saveClientInformation: (client) => { saved.client = client; saved.registrations += 1; },
    tokens: () => saved.tokens,
    saveTokens: (tokens) => { saved.tokens = tokens; },
    codeVerifier: () => saved.verifier,
    saveCodeVerifier: (verifier) => { saved.verifier = verifier; },
    redirectToAuthorization: async (address) => {
      saved.back = await step('login', () => logIn(address, redirectUrl));
      saved.logins += 1;
    },
  };
  const subject = () => JSON.parse(Buffer.from(saved.tokens.access_token.split('.')[1], 'base64url')).sub;
  const ended = new Promise((resolve) => process.stdin.on('end', resolve).resume());

  await connected(authProvider).catch((error) => { if (!saved.back) throw error; });
  const first = new StreamableHTTPClientTransport(new URL(url), { authProvider });
  await step('token', () => first.finishAuth(saved.back.searchParams.get('code')));
  await withClient(echoed, authProvider);
  const before = { subject: subject(), refreshToken: saved.tokens.refresh_token };
  console.log('logged in');
  await ended;
  saved.tokens = { ...saved.tokens, access_token: 'expired' };
  await withClient(echoed, authProvider);
  return {
    registrations: saved.registrations, logins: saved.logins,
    isSameUser: subject() === before.subject, isRotated: saved.tokens.refresh_token !== before.refreshToken,
  };
}

const acts = {
  echo: () => withClient(echoed),
  call: () => withClient(called),
  tools: () => withClient(async (client) => ({ tools: (await client.listTools()).tools.map((tool) => tool.name) })),
  load,
  login,
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
