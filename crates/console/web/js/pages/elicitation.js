// @ts-check
// What a server asks the user for, during a call.

import { button, element, foreign } from "../dom.js";
import { FieldForm } from "../form.js";
import { fields } from "../schema.js";

/** @typedef {{action: "accept" | "decline" | "cancel", content?: unknown}} Answer */

export class Elicitations {
  root = element("div");
  /** @type {Set<(answer: Answer) => void>} */
  #open = new Set();

  /**
   * @param {any} params
   * @param {AbortSignal} signal the server no longer waits
   * @returns {Promise<Answer>}
   */
  show(params, signal) {
    return new Promise((resolve) => {
      const inputs = new FieldForm(fields(params?.requestedSchema ?? {}) ?? []);
      const heading = element("h3", { tabindex: -1 }, "The server asks");
      /** @param {Answer} answer */
      const close = (answer) => {
        this.#open.delete(close);
        form.remove();
        resolve(answer);
      };
      const form = element(
        "form",
        { class: "notice", novalidate: true },
        heading,
        element("p", null, foreign(String(params?.message ?? ""))),
        inputs.root,
        element(
          "div",
          { class: "actions" },
          element("button", { type: "submit", class: "primary" }, "Accept"),
          button("Decline", () => close({ action: "decline" })),
          button("Cancel", () => close({ action: "cancel" })),
        ),
        element("p", { class: "quiet" }, "Enter no passwords or keys: the server sees what you enter."),
      );
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        const content = inputs.read();
        if (content) close({ action: "accept", content });
      });
      signal.addEventListener("abort", () => close({ action: "cancel" }));
      this.#open.add(close);
      this.root.append(form);
      heading.focus();
    });
  }

  close() {
    for (const close of [...this.#open]) close({ action: "cancel" });
  }
}
