// An MCP server with a tool for each thing that the page must show.

import { json } from "./fake-console.mjs";
import { HOSTILE } from "./fake-objects.mjs";

// One pixel.
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const object = (properties, required = []) => ({ type: "object", properties, required });

const TOOLS = [
  {
    name: "echo",
    title: "Echo",
    description: "Returns its text.",
    annotations: { readOnlyHint: true },
    inputSchema: object({ text: { type: "string", description: "The text", maxLength: 1000 } }, ["text"]),
  },
  {
    name: "add",
    description: "Adds two numbers,\nand explains itself\nover several lines.",
    annotations: { destructiveHint: true },
    inputSchema: object(
      {
        a: { type: "number" },
        b: { type: "integer", default: 2, minimum: 1, maximum: 10 },
        mode: { enum: ["exact", "rounded"], default: "exact" },
        isLoud: { type: "boolean" },
        tags: { type: "array", items: { enum: ["red", "green"] } },
        options: object({ unit: { type: "string" }, deep: object({ value: { type: "string" } }) }),
      },
      ["a"],
    ),
  },
  { name: "slow", description: "Reports progress until it is cancelled.", inputSchema: object({}) },
  { name: "ask", description: "Asks for a name.", inputSchema: object({}) },
  { name: "picture", description: "Returns an image.", inputSchema: object({}) },
  { name: "long", description: "Returns five million characters.", inputSchema: object({}) },
  {
    name: "hostile",
    title: HOSTILE,
    description: HOSTILE,
    inputSchema: object({ __proto__x: { type: "string", title: HOSTILE, description: HOSTILE } }),
  },
];

export class FakeMcp {
  /** Every message that came from the page. */
  received = [];
  tools = TOOLS;
  /** Sessions up to this one are lost. */
  lost = 0;
  sessions = 0;
  #questions = new Map();
  #waiters = new Set();

  /** The next message that matches, from now on or before. */
  async message(matches) {
    for (;;) {
      const found = this.received.find(matches);
      if (found) return found;
      await new Promise((resolve) => this.#waiters.add(resolve));
    }
  }

  async respond(server, request, response, body) {
    if (server.endsWith("/protected") && request.headers["x-skep-authorization"] !== "Bearer opensesame") {
      return json(
        response,
        401,
        { error: "invalid_token", error_description: "the token is missing" },
        { "WWW-Authenticate": "Bearer" },
      );
    }
    if (request.method === "DELETE") return (this.#record({ method: "DELETE" }), response.writeHead(200).end());
    if (request.method === "GET") return response.writeHead(405).end();
    const session = Number(request.headers["mcp-session-id"]?.replace("session-", "") ?? Infinity);
    if (session <= this.lost) return response.writeHead(404).end();
    const message = JSON.parse(body);
    this.#record(message);
    if (message.id === undefined) return response.writeHead(202).end();
    if (message.method === undefined) {
      this.#questions.get(message.id)?.(message.result);
      return response.writeHead(202).end();
    }
    const reply = (result, headers) => json(response, 200, { jsonrpc: "2.0", id: message.id, result }, headers);
    if (message.method === "initialize") {
      const serverInfo = { name: "fake", version: "1" };
      return reply(
        { protocolVersion: message.params.protocolVersion, capabilities: { tools: {} }, serverInfo },
        { "Mcp-Session-Id": `session-${++this.sessions}` },
      );
    }
    if (message.method === "tools/list") {
      const page = message.params?.cursor
        ? { tools: this.tools.slice(3) }
        : { tools: this.tools.slice(0, 3), nextCursor: "3" };
      return reply(page);
    }
    return this.#call(message, response, reply);
  }

  async #call({ id, params }, response, reply) {
    const text = (text) => ({ content: [{ type: "text", text }] });
    const stream = () => {
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      return (message) =>
        response.write(`event: message\r\ndata: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\r\n\r\n`);
    };
    switch (params.name) {
      case "add":
        return reply({ ...text("3"), structuredContent: { sum: 3, got: params.arguments } });
      case "slow": {
        const send = stream();
        send({
          method: "notifications/progress",
          params: { progressToken: params._meta.progressToken, progress: 3, total: 10, message: "three of ten" },
        });
        send({ method: "notifications/message", params: { level: "info", logger: "fake", data: "still working" } });
        return undefined;
      }
      case "ask": {
        const send = stream();
        const answer = new Promise((resolve) => this.#questions.set("q-1", resolve));
        const requestedSchema = object(
          {
            name: { type: "string", title: "Your name" },
            colour: {
              type: "string",
              oneOf: [
                { const: "r", title: "Red" },
                { const: "g", title: "Green" },
              ],
            },
          },
          ["name"],
        );
        send({ id: "q-1", method: "elicitation/create", params: { message: "Who are you?", requestedSchema } });
        send({ id, result: text(JSON.stringify(await answer)) });
        return response.end();
      }
      case "picture":
        return reply({
          content: [
            { type: "image", mimeType: "image/png", data: PIXEL },
            { type: "image", mimeType: "image/svg+xml", data: PIXEL },
          ],
        });
      case "long":
        return reply(text("0123456789".repeat(500_000)));
      case "hostile":
        return reply({ ...text(HOSTILE), isError: true });
      default:
        return reply(text(`echo: ${params.arguments.text}`));
    }
  }

  #record(message) {
    this.received.push(message);
    for (const wake of this.#waiters) wake();
    this.#waiters.clear();
  }
}
