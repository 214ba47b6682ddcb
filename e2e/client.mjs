// A client of MCP as its official SDK makes it: has a message of some size echoed, and prints when the answer came.
//
//   node client.mjs SDK URL TRANSPORT SIZE [patient]
//
// A patient one comes again until it is answered, as people do whose server is just being made.
import { setTimeout as sleep } from 'node:timers/promises';

const [sdk, url, transport, size, patient] = process.argv.slice(2);
const part = (name) => import(`${sdk}/@modelcontextprotocol/sdk/dist/esm/client/${name}.js`);
const { Client } = await part('index');
const { SSEClientTransport } = await part('sse');
const { StreamableHTTPClientTransport } = await part('streamableHttp');

async function call() {
  const client = new Client({ name: 'skep-e2e', version: '1' });
  const Transport = transport === 'sse' ? SSEClientTransport : StreamableHTTPClientTransport;
  const message = 'x'.repeat(Number(size));
  try {
    await client.connect(new Transport(new URL(url)));
    const answer = await client.callTool({ name: 'echo', arguments: { message } });
    const at = Date.now();
    const text = answer.content[0].text;
    if (text !== `Echo: ${message}`) throw new Error(`it was answered ${text.slice(0, 200)}`);
    return { at };
  } finally {
    await client.close();
  }
}

const end = Date.now() + 170_000;
for (;;) {
  try {
    console.log(JSON.stringify(await call()));
    process.exit(0);
  } catch (error) {
    if (!patient || Date.now() > end) {
      console.error(error.cause ? `${error.message}: ${error.cause.message}` : error.message);
      process.exit(1);
    }
    await sleep(50);
  }
}
