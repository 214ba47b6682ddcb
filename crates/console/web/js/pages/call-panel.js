// @ts-check
// One tool: its form, and what came of a call.

import { block, button, element, fill, foreign, set } from "../dom.js";
import { FieldForm } from "../form.js";
import { duration } from "../format.js";
import { RpcError } from "../mcp.js";
import { fields } from "../schema.js";
import { json } from "../text.js";
import { content } from "./result.js";

/**
 * @typedef {import("../mcp.js").Tool} Tool
 * @typedef {import("../mcp.js").Message} Message
 */

const LOGGED = 200;

export class CallPanel {
  heading = element("h2", { tabindex: -1 });
  /** @type {FieldForm | null} */
  #form = null;
  #raw = element("textarea", { class: "code", rows: 8, id: "arguments", spellcheck: "false" });
  #fault = element("p", { class: "fault", role: "alert" });
  #inputs = element("div");
  #call = element("button", { type: "submit", class: "primary" }, "Call");
  #cancel = button("Cancel", () => this.cancel(), { disabled: true });
  #toggle = button("Write JSON", () => this.#switch());
  #progress = element("div", { class: "progress", role: "status" });
  #log = element("ol", { class: "plain log", "aria-label": "Log messages of the server" });
  #outcome = element("section", { "aria-label": "Result", "aria-live": "polite" });
  /** @type {AbortController | null} */
  #running = null;
  #ended;

  /**
   * @param {Tool} tool
   * @param {import("../mcp.js").Client} client
   * @param {() => void} ended is called after each call
   */
  constructor(tool, client, ended) {
    this.tool = tool;
    this.#ended = ended;
    this.client = client;
    fill(this.heading, foreign(tool.name));
    this.#fill({});
    const form = element(
      "form",
      { novalidate: true },
      this.#inputs,
      this.#fault,
      element("div", { class: "actions" }, this.#call, this.#cancel, this.#toggle),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    form.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
    });
    this.root = element(
      "div",
      null,
      this.heading,
      tool.title && tool.title !== tool.name && element("p", null, foreign(tool.title)),
      tool.description && description(tool.description),
      form,
      this.#progress,
      this.#log,
      this.#outcome,
    );
  }

  /** @param {Message} message a notification of the server */
  notify({ method, params }) {
    if (method === "notifications/progress" && this.#running) this.#showProgress(params ?? {});
    if (method !== "notifications/message") return;
    const data = typeof params?.data === "string" ? params.data : json(params?.data);
    const level = String(params?.level ?? "");
    this.#log.append(
      element(
        "li",
        null,
        element("span", { class: "tag" }, foreign(level)),
        " ",
        params?.logger && [foreign(String(params.logger)), ": "],
        foreign(data),
      ),
    );
    if (this.#log.childElementCount > LOGGED) this.#log.firstElementChild?.remove();
  }

  cancel() {
    this.#running?.abort();
  }

  /** @param {unknown} initial */
  #fill(initial) {
    const made = fields(this.tool.inputSchema ?? {}, initial);
    this.#form = made && new FieldForm(made);
    this.#toggle.hidden = !made || made.length === 0;
    set(this.#toggle, { "aria-pressed": made ? "false" : "true" });
    if (this.#form && made?.length === 0)
      fill(this.#inputs, element("p", { class: "quiet" }, "This tool takes no arguments."));
    else if (this.#form) fill(this.#inputs, this.#form.root);
    else this.#write(initial);
  }

  /** @param {unknown} value */
  #write(value) {
    this.#form = null;
    this.#raw.value = json(value);
    set(this.#toggle, { "aria-pressed": "true" });
    fill(this.#inputs, element("label", { for: "arguments" }, "Arguments as JSON"), this.#raw);
  }

  /** Between form and JSON; what was entered is kept. */
  #switch() {
    const value = this.#arguments();
    if (value === undefined) return;
    if (this.#form) this.#write(value);
    else this.#fill(value);
  }

  /** @returns {unknown} undefined if something cannot be sent */
  #arguments() {
    fill(this.#fault);
    if (this.#form) {
      const value = this.#form.read();
      if (!value) fill(this.#fault, "Not sent: see the marked fields.");
      return value ?? undefined;
    }
    try {
      return JSON.parse(this.#raw.value || "{}");
    } catch (error) {
      fill(this.#fault, "Not JSON: ", foreign(error instanceof Error ? error.message : String(error)));
      return undefined;
    }
  }

  async #submit() {
    const args = this.#arguments();
    if (args === undefined || this.#running) return;
    const running = new AbortController();
    this.#running = running;
    this.#call.disabled = true;
    this.#cancel.disabled = false;
    fill(this.#log);
    fill(this.#outcome);
    fill(this.#progress, element("progress", { "aria-label": "Progress of the call" }));
    const start = performance.now();
    try {
      const result = await this.client.call(this.tool.name, args, running.signal);
      const took = duration(performance.now() - start);
      fill(
        this.#outcome,
        element(
          "p",
          null,
          element(
            "span",
            { class: `phase ${result?.isError ? "bad" : "good"}` },
            result?.isError ? "The tool failed" : "OK",
          ),
          ` after ${took}`,
        ),
        content(result ?? {}),
      );
    } catch (error) {
      fill(this.#outcome, failure(error));
    } finally {
      this.#running = null;
      this.#call.disabled = false;
      this.#cancel.disabled = true;
      fill(this.#progress);
      this.#ended();
    }
  }

  /** @param {{progress?: number, total?: number, message?: string}} params */
  #showProgress({ progress, total, message }) {
    const bar = element("progress", {
      "aria-label": "Progress of the call",
      value: total ? progress : null,
      max: total ?? null,
    });
    const figures = `${progress ?? ""}${total ? ` of ${total}` : ""}`;
    fill(this.#progress, bar, " ", figures, message && [" ", foreign(String(message))]);
  }
}

/** @param {string} text */
function description(text) {
  return text.length < 600 && !text.includes("\n") ? element("p", null, foreign(text)) : block(text);
}

/** @param {unknown} error */
function failure(error) {
  const message = error instanceof Error ? error.message : String(error);
  return [
    element("p", { class: "problem" }, error instanceof RpcError && `JSON-RPC error ${error.code}: `, foreign(message)),
    error instanceof RpcError && error.data !== undefined && block(json(error.data)),
  ];
}
