// @ts-check
// A session at a server, for one page. Access tokens are kept in memory, for as long as the page is open.

import { endpoint, key, session } from "./api.js";
import { button, element, fill, foreign } from "./dom.js";
import { Client, Unauthorized } from "./mcp.js";

/**
 * @typedef {import("./api.js").Ref} Ref
 * @typedef {import("./mcp.js").Tool} Tool
 */

/** @type {Map<string, string>} */
const tokens = new Map();

export class Connection {
  /** @type {Client | null} */
  client = null;
  #ref;
  #host;
  #listed;
  #expire;
  #isClosed = false;
  /** Where the state is shown: connecting, a request for a token, or what failed. */
  root = element("div", { role: "status" });

  /**
   * @param {Ref} ref
   * @param {import("./mcp.js").Host} host
   * @param {(tools: Tool[]) => void} listed
   * @param {(error: unknown) => void} expire is called when the sign-in has ended
   */
  constructor(ref, host, listed, expire) {
    this.#ref = ref;
    this.#host = host;
    this.#listed = listed;
    this.#expire = expire;
  }

  /** For a server that is not ready: connects on request. */
  offer() {
    fill(
      this.root,
      element("p", { class: "quiet" }, "The server is not ready. "),
      button("Connect all the same", () => this.open()),
    );
  }

  async open() {
    this.client?.close();
    const client = new Client(endpoint(this.#ref), tokens.get(key(this.#ref)) ?? "", this.#host);
    this.client = client;
    fill(this.root, element("p", { class: "quiet" }, "Connecting to the server…"));
    try {
      await client.open();
      await this.list();
    } catch (error) {
      if (!this.#isClosed && this.client === client) await this.#explain(error);
    }
  }

  /** Lists the tools again. */
  async list() {
    const tools = (await this.client?.tools()) ?? [];
    if (this.#isClosed) return;
    fill(this.root);
    this.#listed(tools);
  }

  close() {
    this.#isClosed = true;
    this.client?.close();
  }

  /** @param {unknown} error */
  async #explain(error) {
    if (!(error instanceof Unauthorized)) {
      const message = error instanceof Error ? error.message : String(error);
      return fill(
        this.root,
        element("p", { class: "problem" }, foreign(message)),
        button("Connect again", () => this.open()),
      );
    }
    // The console and the server both use 401.
    try {
      await session();
    } catch (ended) {
      return this.#expire(ended);
    }
    fill(this.root, this.#tokenForm(error.message));
  }

  /** @param {string} reason */
  #tokenForm(reason) {
    const input = element("input", { type: "password", id: "access-token", autocomplete: "off", required: true });
    const form = element(
      "form",
      { class: "token" },
      element("p", null, "The server wants an access token", reason && [": ", foreign(reason)], "."),
      element("label", { for: "access-token" }, "Access token"),
      input,
      element("button", { type: "submit", class: "primary" }, "Connect"),
      element("p", { class: "quiet" }, "It is kept in the memory of this page only."),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      tokens.set(key(this.#ref), input.value.trim());
      this.open();
    });
    return form;
  }
}
