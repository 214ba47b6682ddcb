// A client by the official TypeScript SDK: node client.mjs MODULES MAJOR TRANSPORT URL PLAN
// It executes the plan, and prints the results.
import { createRequire } from "node:module";

const [modules, major, transport, url, plan] = process.argv.slice(2);
const { echo, slow, resource, prompt } = JSON.parse(plan);
const from = createRequire(modules);
const part = (name) => from(`@modelcontextprotocol/${name}`);

let Client, Streamable, Sse;
let progressed = "notifications/progress";
if (major === "1") {
  ({ ProgressNotificationSchema: progressed } = part("sdk/types.js"));
  ({ Client } = part("sdk/client/index.js"));
  ({ StreamableHTTPClientTransport: Streamable } = part("sdk/client/streamableHttp.js"));
  ({ SSEClientTransport: Sse } = part("sdk/client/sse.js"));
} else {
  ({ Client, StreamableHTTPClientTransport: Streamable, SSEClientTransport: Sse } = part("client"));
}

const client = new Client(
  { name: "typescript", version: major },
  { capabilities: {}, ...(major === "2" && transport === "streamable" ? { versionNegotiation: { mode: "auto" } } : {}) },
);
const Transport = transport === "sse" ? Sse : Streamable;
await client.connect(new Transport(new URL(url)));

// With a separate handler: the SDK's forgets a request as soon as its response is read, and with it progress that arrived
// with the response.
const progress = [];
client.setNotificationHandler(progressed, ({ params }) => void progress.push([params.progress, params.total]));
const followed = { ...slow, _meta: { progressToken: "mine" } };

const tools = (await client.listTools()).tools.map((tool) => tool.name).sort();
const echoed = (await client.callTool(echo)).content;
const done = (await client.callTool(followed)).content;
const read = (await client.readResource({ uri: resource })).contents;
const messages = (await client.getPrompt(prompt)).messages;
const protocol = client.getNegotiatedProtocolVersion?.() ?? client.transport?.protocolVersion ?? null;
const server = client.getServerVersion()?.name ?? null;
await client.close();
process.stdout.write(JSON.stringify({ server, protocol, tools, echoed, progress, done, read, messages }));
process.exit(0);
