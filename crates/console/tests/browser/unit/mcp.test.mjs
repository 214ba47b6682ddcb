import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { Client, RpcError, Unauthorized } from "../../../web/js/mcp.js";

const { fetch } = globalThis;
afterEach(() => (globalThis.fetch = fetch));

const json = (id, result) => Response.json({ jsonrpc: "2.0", id, result }, { headers: { "Mcp-Session-Id": "s" } });
const stream = (...events) => new Response(events.join(""), { headers: { "Content-Type": "text/event-stream" } });
const data = (message, head = "") => `${head}data: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`;

/** A client with a session at a server that responds to calls with this function. */
async function fixture(respond, elicit = async () => ({ action: "cancel" })) {
  const sent = [];
  globalThis.fetch = async (_, { method = "GET", headers, body }) => {
    const message = body && JSON.parse(body);
    sent.push({ method, headers, message });
    if (method === "GET" && !headers["Last-Event-ID"]) return new Response(null, { status: 405 });
    if (message?.method === "initialize") return json(message.id, { protocolVersion: "2025-06-18" });
    if (message && (message.id === undefined || message.method === undefined)) return new Response(null, { status: 202 });
    return respond(message, headers);
  };
  const notified = [];
  const client = new Client("http://x/mcp", "secret", {
    record() {},
    notified: (message) => notified.push(message),
    elicit,
  });
  await client.open();
  return { client, sent, notified, call: () => client.call("echo", {}, new AbortController().signal) };
}

test("every request after the first has the session, the revision that was agreed on, and the server's token", async () => {
  const { sent, call } = await fixture((message) => json(message.id, {}));
  await call();
  const { headers, message } = sent.at(-1);
  assert.equal(headers["Mcp-Session-Id"], "s");
  assert.equal(headers["MCP-Protocol-Version"], "2025-06-18");
  assert.equal(headers["X-Skep-Authorization"], "Bearer secret");
  assert.equal(headers["X-Skep-Console"], "1");
  assert.notEqual(message.params._meta.progressToken, undefined);
});

test("a stream that the server ended early is continued where it stopped", async () => {
  let id;
  const { call, notified } = await fixture((message, headers) => {
    id ??= message.id;
    if (message) return stream("retry: 1\nid: 7\ndata:\n\n", data({ method: "notifications/progress" }));
    assert.equal(headers["Last-Event-ID"], "7");
    return stream(data({ id, result: { content: [] } }));
  });
  assert.deepEqual(await call(), { content: [] });
  assert.equal(notified.length, 1);
});

test("a stream that ends without a response, and that cannot be continued, is an error", async () => {
  const { call } = await fixture(() => stream(data({ method: "notifications/message" })));
  await assert.rejects(call(), /without a response/);
});

test("requests of the server are answered, and unknown ones refused", async () => {
  const { call, sent } = await fixture(
    (message) =>
      stream(
        data({ id: "p", method: "ping" }),
        data({ id: 0, method: "sampling/createMessage" }),
        data({ id: "u", method: "elicitation/create", params: { mode: "url" } }),
        data({ id: "e", method: "elicitation/create", params: { message: "?" } }),
        data({ id: message.id, result: {} }),
      ),
    async ({ message }) => ({ action: "accept", content: { message } }),
  );
  await call();
  const answers = sent.map(({ message }) => message).filter((message) => message && message.method === undefined);
  assert.deepEqual(
    answers.map(({ id, result, error }) => [id, result ?? error.code]),
    [
      ["p", {}],
      [0, -32601],
      ["u", -32602],
      ["e", { action: "accept", content: { message: "?" } }],
    ],
  );
});

test("errors of HTTP and of JSON-RPC are distinguished", async () => {
  const failing = async (status, body) => (await fixture(() => Response.json(body, { status }))).call();
  await assert.rejects(
    failing(401, { error_description: "expired" }),
    (error) => error instanceof Unauthorized && error.message === "expired",
  );
  await assert.rejects(
    failing(400, { error: { code: -32602, message: "wrong" } }),
    (error) => error instanceof RpcError && error.code === -32602,
  );
  await assert.rejects(failing(502, { error: "the server does not respond" }), /the server does not respond/);
});
