// @ts-check
// The tools of a server: what it offers to the viewer now, what its status reports, and what this browser saw before.

import { Connection } from "../connection.js";
import { block, button, element, fill, foreign } from "../dom.js";
import { link } from "../router.js";
import { changes, difference, digests, remembered, rememberedDefinitions, rememberTools } from "../seen.js";
import { json } from "../text.js";

/**
 * @typedef {import("../api.js").Ref} Ref
 * @typedef {import("../api.js").Detail} Detail
 * @typedef {import("../mcp.js").Tool} Tool
 */

export class Tools {
  #ref;
  #list = element("div");
  #listed;
  /** @type {Tool[] | null} */
  #tools = null;
  /** @type {import("../seen.js").Seen} */
  #now = {};
  /** @type {import("../api.js").Reported[]} */
  #reported = [];

  /**
   * @param {Ref} ref
   * @param {(tools: Tool[]) => void} listed
   * @param {(error: unknown) => void} expire
   */
  constructor(ref, listed, expire) {
    this.#ref = ref;
    this.#listed = listed;
    /** @type {import("../mcp.js").Host} */
    const host = {
      record: () => {},
      notified: ({ method }) => {
        if (method === "notifications/tools/list_changed") this.connection.list().catch(() => {});
      },
      elicit: async () => ({ action: "cancel" }),
    };
    this.connection = new Connection(ref, host, (tools) => this.#show(tools), expire);
    this.root = element("div", null, this.connection.root, this.#list);
  }

  /** @param {import("../api.js").Reported[]} reported */
  report(reported) {
    this.#reported = reported;
    this.#draw();
  }

  /** @param {Tool[]} tools */
  #show(tools) {
    this.#tools = tools;
    this.#now = digests(tools);
    this.#listed(tools);
    if (!remembered(this.#ref)) rememberTools(this.#ref, tools);
    this.#draw();
  }

  #draw() {
    const offered = this.#tools;
    const reported = new Map(this.#reported.map((tool) => [tool.name, tool]));
    if (!offered)
      return fill(
        this.#list,
        reported.size > 0 && list(this.#reported.map((tool) => this.#item(tool, null, undefined, false))),
      );
    const now = this.#now;
    const { marks, missing } = difference(remembered(this.#ref) ?? now, now);
    const hidden = this.#reported.filter((tool) => !Object.hasOwn(now, tool.name));
    const isDifferent = marks.size + missing.length > 0;
    const before = isDifferent ? rememberedDefinitions(this.#ref) : {};
    fill(
      this.#list,
      isDifferent && this.#warning(marks.size, missing),
      offered.length === 0 && element("p", { class: "quiet" }, "The server offers no tools to you."),
      list([
        ...offered.map((tool) => {
          const isUnreported = reported.size > 0 && !reported.has(tool.name);
          return this.#item(
            reported.get(tool.name) ?? null,
            tool,
            marks.get(tool.name),
            isUnreported && "not in the status",
            marks.get(tool.name) === "changed" && Object.hasOwn(before, tool.name) ? before[tool.name] : undefined,
          );
        }),
        ...hidden.map((tool) => this.#item(tool, null, undefined, "only in the status: not offered to you")),
      ]),
    );
  }

  /**
   * @param {number} marked
   * @param {string[]} missing
   */
  #warning(marked, missing) {
    const seen = button("Mark as seen", () => {
      rememberTools(this.#ref, this.#tools ?? []);
      this.#draw();
    });
    return element(
      "div",
      { class: "notice" },
      element(
        "p",
        null,
        "Since this browser last saw the list: ",
        marked > 0 && `${marked} new or changed`,
        marked > 0 && missing.length > 0 && ", ",
        missing.length > 0 && [
          "missing: ",
          missing.map((name, index) => [index > 0 && ", ", element("code", null, foreign(name))]),
        ],
        ".",
      ),
      seen,
    );
  }

  /**
   * @param {import("../api.js").Reported | null} reported
   * @param {Tool | null} tool
   * @param {"new" | "changed" | undefined} mark
   * @param {string | false} note
   * @param {Record<string, unknown>} [before] its definition when it was last seen, if it has changed since
   */
  #item(reported, tool, mark, note, before) {
    const name = tool?.name ?? reported?.name ?? "";
    const title = tool?.title ?? tool?.annotations?.title ?? reported?.title ?? "";
    const isReadOnly = tool?.annotations?.readOnlyHint ?? reported?.readOnly;
    const isDestructive = tool?.annotations?.destructiveHint ?? reported?.destructive;
    const { kind, namespace, name: server } = this.#ref;
    const description = tool?.description ?? "";
    const brief = description.split("\n", 1)[0];
    const isBrief = brief === description && description.length < 200;
    return element(
      "li",
      { class: "tool" },
      element(
        "p",
        null,
        tool
          ? element("a", { href: link("try", [kind, namespace, server, name]) }, foreign(name))
          : element("code", null, foreign(name)),
        title && title !== name && [" ", foreign(title)],
        mark && [" ", element("span", { class: "mark" }, mark)],
        note && [" ", element("span", { class: "tag" }, note)],
        isReadOnly === true && [" ", element("span", { class: "tag" }, "read-only")],
        isDestructive === true && isReadOnly !== true && [" ", element("span", { class: "tag" }, "destructive")],
      ),
      isBrief
        ? description && element("p", { class: "quiet" }, foreign(description))
        : element("details", null, element("summary", null, foreign(brief.slice(0, 160)), "…"), block(description)),
      tool && before && changed(before, tool),
      tool && onRequest("Schema", () => schemas(tool)),
    );
  }
}

/**
 * What differs between two definitions of a tool.
 * @param {Record<string, unknown>} before
 * @param {Tool} tool
 */
function changed(before, tool) {
  /** @param {unknown} value */
  const shown = (value) =>
    value === undefined ? element("p", { class: "quiet" }, "nothing") : block(typeof value === "string" ? value : json(value));
  return onRequest("What changed", () =>
    changes(before, tool).map(({ field, before, now }) => [
      element("h3", null, foreign(field)),
      element("p", { class: "quiet" }, "Before"),
      shown(before),
      element("p", { class: "quiet" }, "Now"),
      shown(now),
    ]),
  );
}

/** @param {Tool} tool */
const schemas = (tool) => [
  block(json(tool.inputSchema)),
  tool.outputSchema !== undefined && [element("p", { class: "quiet" }, "Schema of its results"), block(json(tool.outputSchema))],
];

/**
 * A part that is made when it is first opened: a server may have thousands of tools.
 * @param {string} title
 * @param {() => import("../dom.js").Child} content
 */
function onRequest(title, content) {
  const details = element("details", null, element("summary", null, title));
  details.addEventListener("toggle", () => details.append(...nodes(content())), { once: true });
  return details;
}

/** @param {import("../dom.js").Child} child */
const nodes = (child) => [...element("div", null, child).childNodes];

/** @param {HTMLElement[]} items */
const list = (items) => element("ul", { class: "plain" }, items);
