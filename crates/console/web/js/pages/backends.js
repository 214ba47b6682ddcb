// @ts-check
// The servers behind a virtual server, or in a group, and the tools that come from each.

import { key } from "../api.js";
import { element, foreign } from "../dom.js";
import { SERVERS } from "../filter.js";
import { count } from "../format.js";
import { badge } from "../phase.js";
import { objectLink } from "../router.js";

/**
 * @typedef {import("../api.js").Detail} Detail
 * @typedef {import("../api.js").Backend} Backend
 * @typedef {import("../mcp.js").Tool} Tool
 */

/**
 * @param {Detail} object
 * @param {Tool[]} offered
 * @param {import("../store.js").Store} store
 */
export function backends(object, offered, store) {
  /** @param {string} name */
  const member = (name) => {
    const refs = [...SERVERS, "MCPServerEntry"].map((kind) => ({ kind, namespace: object.namespace, name }));
    const found = refs.find((ref) => store.objects.has(key(ref)));
    return found ? element("a", { href: objectLink(found) }, foreign(name)) : foreign(name);
  };
  const known = new Set(object.backends.flatMap(({ offers }) => (offers ?? []).map(({ name }) => name)));
  // What a backend offers may not be reported, or in part. A tool of none of them is the virtual server's own.
  const areAllKnown = object.backends.every(({ offers, tools }) => offers && offers.length === tools);
  const others = areAllKnown ? offered.map(({ name }) => name).filter((name) => !known.has(name)) : [];
  return [
    element(
      "ul",
      { class: "plain" },
      object.backends.map((backend) =>
        element(
          "li",
          null,
          element(
            "p",
            null,
            element("strong", null, member(backend.name)),
            " ",
            badge(backend.phase),
            backend.tools != null && ` ${count(backend.tools)} ${backend.tools === 1 ? "tool" : "tools"}`,
          ),
          backend.message && element("p", { class: "message" }, foreign(backend.message)),
          backend.url && element("p", { class: "quiet" }, foreign(backend.url)),
          tools(backend),
        ),
      ),
    ),
    object.kind === "VirtualMCPServer" &&
      others.length > 0 && [element("p", null, "Tools of the virtual server itself:"), names(others)],
  ];
}

/**
 * Which tools clients have from a backend, each with its name there if it is another one.
 * @param {Backend} backend
 */
function tools({ offers, tools: total, hidden }) {
  const listed = offers ?? [];
  const rest = (total ?? 0) - listed.length;
  return [
    listed.length > 0 &&
      element(
        "ul",
        { class: "plain routes" },
        listed.map(({ name, originalName }) =>
          element(
            "li",
            null,
            element("code", null, foreign(name)),
            originalName !== name && [" is ", element("code", null, foreign(originalName))],
          ),
        ),
      ),
    offers && rest > 0 && element("p", { class: "quiet" }, `and ${count(rest)} more`),
    hidden.length > 0 && [element("p", { class: "message" }, "Hidden, because another tool has the name:"), names(hidden)],
  ];
}

/** @param {string[]} tools */
const names = (tools) =>
  element(
    "p",
    { class: "names" },
    tools.map((name, index) => [index > 0 && ", ", element("code", null, foreign(name))]),
  );
