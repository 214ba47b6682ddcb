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
 * @typedef {import("../mcp.js").Tool} Tool
 */

/**
 * Which tools have the name of a backend as prefix: the longest one that fits.
 * @param {string[]} backends
 * @param {string[]} tools
 * @returns {Map<string, string[]>} those without one are under the empty name
 */
export function byPrefix(backends, tools) {
  const longestFirst = [...backends].sort((a, b) => b.length - a.length);
  /** @type {Map<string, string[]>} */
  const found = new Map();
  for (const tool of tools) {
    const backend = longestFirst.find((name) => tool.startsWith(name) && /^[_.\-/:]/.test(tool.slice(name.length))) ?? "";
    found.set(backend, [...(found.get(backend) ?? []), tool]);
  }
  return found;
}

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
  const tools = byPrefix(
    object.backends.map(({ name }) => name),
    offered.map(({ name }) => name),
  );
  const others = tools.get("") ?? [];
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
          names(tools.get(backend.name) ?? []),
        ),
      ),
    ),
    object.kind === "VirtualMCPServer" && others.length > 0 && element("p", null, "Tools without the prefix of a backend: "),
    object.kind === "VirtualMCPServer" && names(others),
  ];
}

/** @param {string[]} tools */
const names = (tools) =>
  tools.length > 0 &&
  element(
    "p",
    { class: "names" },
    tools.map((name, index) => [index > 0 && ", ", element("code", null, foreign(name))]),
  );
