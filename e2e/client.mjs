// A client of MCP as its official SDK makes it: calls a tool, and prints the answer with the time when it came.
//
//   node client.mjs SDK URL TRANSPORT TOOL ARGUMENTS [patient]
//
// A patient one comes again until it is answered, as people do whose server is just being made.
import { setTimeout as sleep } from 'node:timers/promises';

const [sdk, url, transport, tool, args, patient] = process.argv.slice(2);
const part = (name) => import(`${sdk}/@modelcontextprotocol/sdk/dist/esm/client/${name}.js`);
const { Client } = await part('index');
const { SSEClientTransport } = await part('sse');
const { StreamableHTTPClientTransport } = await part('streamableHttp');

async function call() {
  const client = new Client({ name: 'skep-e2e', version: '1' });
  const Transport = transport === 'sse' ? SSEClientTransport : StreamableHTTPClientTransport;
  await client.connect(new Transport(new URL(url)));
  const answer = await client.callTool({ name: tool, arguments: JSON.parse(args) });
  const at = Date.now();
  await client.close();
  return { answer, at };
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
