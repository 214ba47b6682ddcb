// @ts-check
// Every JSON-RPC message of a session, both directions, newest first, for those who want to see the protocol.

import { block, element, foreign } from "../dom.js";
import { json } from "../text.js";

const KEPT = 200;

export class Messages {
  #list = element("ol", { class: "plain messages" });
  #count = element("span", null, "0");
  #total = 0;
  /** Messages are rendered when they are looked at.
   * @type {[time: Date, direction: string, message: unknown][]} */
  #waiting = [];

  constructor() {
    this.root = element("details", { class: "raw" }, element("summary", null, "Messages: ", this.#count), this.#list);
    this.root.addEventListener("toggle", () => this.#draw());
  }

  /**
   * @param {"sent" | "received"} direction
   * @param {unknown} message
   */
  record(direction, message) {
    this.#waiting.push([new Date(), direction, message]);
    if (this.#waiting.length > KEPT) this.#waiting.shift();
    this.#count.textContent = String(++this.#total);
    this.#draw();
  }

  #draw() {
    if (!this.root.open) return;
    for (const [time, direction, message] of this.#waiting) {
      const arrow = element(
        "span",
        { class: "quiet" },
        `${direction === "sent" ? "→ sent" : "← received"} ${time.toLocaleTimeString()} `,
      );
      const title = element("summary", null, arrow, element("code", null, foreign(summary(message))));
      this.#list.prepend(element("li", null, element("details", null, title, block(json(message)))));
    }
    this.#waiting = [];
    while (this.#list.childElementCount > KEPT) this.#list.lastElementChild?.remove();
  }
}

/**
 * What a message is, in a few words.
 * @param {any} message
 */
function summary(message) {
  if (message?.method) return String(message.method);
  return `${message?.error ? "error" : "result"} of ${message?.id ?? "a request"}`;
}
