// @ts-check
// An MCP client over streamable HTTP, with elicitation.

import { MARK } from "./api.js";
import { pause } from "./pause.js";
import { events } from "./sse.js";
import { authorization } from "./token.js";

/**
 * @typedef {{jsonrpc: "2.0", id?: string | number, method?: string, params?: any, result?: any, error?: RpcFault}} Message
 * @typedef {{code: number, message: string, data?: unknown}} RpcFault
 * @typedef {{name: string, title?: string, description?: string, inputSchema?: any, outputSchema?: any,
 *   annotations?: any}} Tool
 * @typedef {object} Host what the page does for the client
 * @property {(direction: "sent" | "received", message: unknown) => void} record
 * @property {(message: Message) => void} notified
 * @property {(params: any, signal: AbortSignal) => Promise<{action: string, content?: unknown}>} elicit
 */

const REVISION = "2025-11-25";
const PAGES = 100;
const RETRY = 3000;

/** The server wants an access token, or another one. */
export class Unauthorized extends Error {}

/** The server does not know the session any more. */
class SessionLost extends Error {}

export class RpcError extends Error {
  /** @param {RpcFault} fault */
  constructor(fault) {
    super(fault.message);
    this.code = fault.code;
    this.data = fault.data;
  }
}

export class Client {
  #endpoint;
  #host;
  #token;
  #session = "";
  #revision = "";
  #lastId = 0;
  #closed = new AbortController();
  /** @type {Map<string | number, {resolve: (result: any) => void, reject: (error: Error) => void}>} */
  #pending = new Map();
  /** @type {Map<string | number, AbortController>} */
  #questions = new Map();

  /**
   * @param {string} endpoint
   * @param {string} token for the server, or empty
   * @param {Host} host
   */
  constructor(endpoint, token, host) {
    this.#endpoint = endpoint;
    this.#token = token;
    this.#host = host;
  }

  /** @returns {Promise<any>} what the server reports about itself */
  async open() {
    this.#session = "";
    this.#revision = "";
    const result = await this.#send("initialize", {
      protocolVersion: REVISION,
      capabilities: { elicitation: {} },
      clientInfo: { name: "skep-console", title: "skep console", version: "1" },
    });
    this.#revision = result.protocolVersion;
    await this.#post({ jsonrpc: "2.0", method: "notifications/initialized" });
    this.#listen();
    return result;
  }

  /** @returns {Promise<Tool[]>} of all pages */
  async tools() {
    /** @type {Tool[]} */
    const tools = [];
    let cursor;
    for (let page = 0; page < PAGES; page++) {
      const result = await this.#request("tools/list", cursor === undefined ? {} : { cursor });
      tools.push(...(result.tools ?? []));
      cursor = result.nextCursor;
      if (cursor === undefined || cursor === null) break;
    }
    return tools;
  }

  /**
   * @param {string} name
   * @param {unknown} args
   * @param {AbortSignal} signal cancels the call
   * @returns {Promise<any>}
   */
  call(name, args, signal) {
    return this.#request("tools/call", { name, arguments: args, _meta: { progressToken: ++this.#lastId } }, signal);
  }

  /**
   * @param {string} method
   * @param {any} params
   * @param {AbortSignal} [signal]
   * @returns {Promise<any>}
   */
  async #request(method, params, signal) {
    try {
      return await this.#send(method, params, signal);
    } catch (error) {
      if (!(error instanceof SessionLost)) throw error;
      await this.open();
      return this.#send(method, params, signal);
    }
  }

  /**
   * @param {string} method
   * @param {any} params
   * @param {AbortSignal} [signal]
   * @returns {Promise<any>}
   */
  #send(method, params, signal) {
    const id = ++this.#lastId;
    const stop = new AbortController();
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      signal?.addEventListener("abort", () => {
        this.#post({
          jsonrpc: "2.0",
          method: "notifications/cancelled",
          params: { requestId: id, reason: "cancelled by the user" },
        })
          .catch(() => {})
          .finally(() => stop.abort());
        reject(new Error("cancelled"));
      });
      this.#post({ jsonrpc: "2.0", id, method, params }, stop.signal)
        .then((response) => this.#follow(response, stop.signal, id))
        .then(() => reject(new Error("the server ended the stream without a response")), reject);
    }).finally(() => {
      this.#pending.delete(id);
      // The response has arrived: what may follow on its stream belongs to nothing.
      setTimeout(() => stop.abort(), RETRY);
    });
  }

  /** Ends the session. The request outlives the page. */
  close() {
    this.#closed.abort();
    for (const question of this.#questions.values()) question.abort();
    for (const { reject } of this.#pending.values()) reject(new Error("closed"));
    if (!this.#session) return;
    fetch(this.#endpoint, { method: "DELETE", headers: this.#headers(), keepalive: true }).catch(() => {});
    this.#session = "";
  }

  #headers() {
    return {
      ...MARK,
      ...authorization(),
      ...(this.#session && { "Mcp-Session-Id": this.#session }),
      ...(this.#revision && { "MCP-Protocol-Version": this.#revision }),
      ...(this.#token && { "X-Skep-Authorization": `Bearer ${this.#token}` }),
    };
  }

  /**
   * @param {Message} message
   * @param {AbortSignal} [signal]
   */
  async #post(message, signal) {
    this.#host.record("sent", message);
    const response = await fetch(this.#endpoint, {
      method: "POST",
      headers: { ...this.#headers(), "Content-Type": "application/json", Accept: "application/json, text/event-stream" },
      body: JSON.stringify(message),
      signal: signal ? AbortSignal.any([signal, this.#closed.signal]) : this.#closed.signal,
    });
    if (message.method === "initialize") this.#session = response.headers.get("Mcp-Session-Id") ?? "";
    if (response.ok) return response;
    throw await this.#failure(response);
  }

  /** @param {Response} response */
  async #failure(response) {
    if (response.status === 404 && this.#session) return new SessionLost("the server ended the session");
    const text = await response.text();
    try {
      const body = JSON.parse(text);
      this.#host.record("received", body);
      if (response.status === 401) return new Unauthorized(body.error_description ?? body.error?.message ?? "");
      if (body.error?.code !== undefined) return new RpcError(body.error);
      if (typeof body.error === "string") return new Error(body.error);
    } catch {
      if (response.status === 401) return new Unauthorized("");
    }
    return new Error(`the server responded with ${response.status} ${text.slice(0, 500)}`);
  }

  /**
   * Reads the messages of a response. A stream that the server ended early is continued where it stopped.
   * @param {Response} response
   * @param {AbortSignal} signal
   * @param {number} [awaited] the request that it answers
   */
  async #follow(response, signal, awaited) {
    const type = response.headers.get("Content-Type") ?? "";
    if (type.startsWith("application/json")) {
      const body = await response.json();
      for (const message of Array.isArray(body) ? body : [body]) this.#receive(message);
      return;
    }
    if (!type.startsWith("text/event-stream") || !response.body) return;
    let last = "";
    let wait = RETRY;
    /** @type {Response | null} */
    let current = response;
    while (current?.body) {
      for await (const event of events(current.body)) {
        last = event.id ?? last;
        wait = event.retry ?? wait;
        if (event.data) this.#receive(JSON.parse(event.data));
      }
      if (!last || awaited === undefined || !this.#pending.has(awaited)) return;
      await pause(wait, signal);
      current = await this.#resume(last, signal);
    }
  }

  /**
   * @param {string} last
   * @param {AbortSignal} signal
   */
  async #resume(last, signal) {
    const response = await fetch(this.#endpoint, {
      headers: { ...this.#headers(), Accept: "text/event-stream", ...(last && { "Last-Event-ID": last }) },
      signal: AbortSignal.any([signal, this.#closed.signal]),
    });
    return response.ok ? response : null;
  }

  /** Requests and notifications that belong to no call come on a stream of their own, if the server has one. */
  async #listen() {
    const signal = this.#closed.signal;
    try {
      for (;;) {
        const response = await this.#resume("", signal);
        if (!response) return;
        await this.#follow(response, signal);
        await pause(RETRY, signal);
      }
    } catch {
      // The session ended, or the server did: the next request reports it.
    }
  }

  /** @param {Message} message */
  #receive(message) {
    this.#host.record("received", message);
    if (message.method === undefined) {
      const waiting = this.#pending.get(message.id ?? "");
      if (message.error) waiting?.reject(new RpcError(message.error));
      else waiting?.resolve(message.result);
    } else if (message.id === undefined) {
      if (message.method === "notifications/cancelled") this.#questions.get(message.params?.requestId)?.abort();
      this.#host.notified(message);
    } else this.#answer(message.id, message).catch(() => {});
  }

  /**
   * @param {string | number} id
   * @param {Message} request
   */
  async #answer(id, request) {
    if (request.method === "ping") return this.#post({ jsonrpc: "2.0", id, result: {} });
    if (request.method !== "elicitation/create") {
      return this.#post({ jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } });
    }
    if (request.params?.mode && request.params.mode !== "form") {
      return this.#post({ jsonrpc: "2.0", id, error: { code: -32602, message: "only elicitation by form is supported" } });
    }
    const question = new AbortController();
    this.#questions.set(id, question);
    try {
      const result = await this.#host.elicit(request.params, question.signal);
      if (question.signal.aborted) return undefined;
      return await this.#post({ jsonrpc: "2.0", id, result });
    } finally {
      this.#questions.delete(id);
    }
  }
}
