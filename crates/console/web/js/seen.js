// @ts-check
// The tools that this browser saw at a server, as digests: a server that changes a description behind one's back is caught. Their
// definitions are kept as well, as far as there is room, so that the change itself can be shown.

import { key } from "./api.js";
import { sha256 } from "./sha256.js";
import { canonical } from "./text.js";

/**
 * @typedef {import("./mcp.js").Tool} Tool
 * @typedef {Record<string, string>} Seen a digest for each name
 * @typedef {Record<string, Record<string, unknown>>} Definitions a tool for each name
 * @typedef {{field: string, before: unknown, now: unknown}} Change
 * @typedef {{marks: Map<string, "new" | "changed">, missing: string[]}} Difference
 */

/**
 * @param {Tool[]} tools
 * @returns {Seen}
 */
export function digests(tools) {
  return Object.fromEntries(tools.map((tool) => [tool.name, sha256(canonical(definition(tool)))]));
}

/**
 * What a tool is. `_meta` is for programs, and may differ from one response to the next.
 * @param {Tool} tool
 * @returns {Record<string, unknown>}
 */
const definition = (tool) => ({ ...tool, _meta: undefined });

/** How many characters of definitions are kept for a tool, and for a server. */
const KEPT = { tool: 8_000, server: 64_000 };

/**
 * The definitions that are kept: those of the first tools that there is room for.
 * @param {Tool[]} tools
 * @returns {Definitions}
 */
export function definitions(tools) {
  let room = KEPT.server;
  /** @type {Definitions} */
  const kept = Object.create(null);
  for (const tool of tools) {
    const { length } = canonical(definition(tool));
    if (length > KEPT.tool || length > room) continue;
    room -= length;
    kept[tool.name] = definition(tool);
  }
  return kept;
}

/**
 * The fields of a tool that differ.
 * @param {Record<string, unknown>} before
 * @param {Tool} tool
 * @returns {Change[]}
 */
export function changes(before, tool) {
  const now = definition(tool);
  const fields = [...new Set([...Object.keys(before), ...Object.keys(now)])].sort();
  return fields
    .filter((field) => canonical(before[field]) !== canonical(now[field]))
    .map((field) => ({ field, before: before[field], now: now[field] }));
}

/**
 * @param {Seen} before
 * @param {Seen} now
 * @returns {Difference}
 */
export function difference(before, now) {
  /** @type {Difference["marks"]} */
  const marks = new Map();
  for (const [name, digest] of Object.entries(now)) {
    if (!Object.hasOwn(before, name)) marks.set(name, "new");
    else if (before[name] !== digest) marks.set(name, "changed");
  }
  return { marks, missing: Object.keys(before).filter((name) => !Object.hasOwn(now, name)) };
}

const DEFINITIONS = "skep.definitions/";

/** @param {import("./api.js").Ref} ref */
const place = (ref) => `skep.tools/${key(ref)}`;

/** @param {string} place */
function stored(place) {
  try {
    return JSON.parse(localStorage.getItem(place) ?? "null");
  } catch {
    return null;
  }
}

/**
 * @param {string} place
 * @param {unknown} value
 */
function store(place, value) {
  try {
    localStorage.setItem(place, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

/**
 * @param {import("./api.js").Ref} ref
 * @returns {Seen | null}
 */
export const remembered = (ref) => stored(place(ref));

/**
 * @param {import("./api.js").Ref} ref
 * @returns {Definitions}
 */
export const rememberedDefinitions = (ref) => stored(DEFINITIONS + key(ref)) ?? {};

/**
 * A full or forbidden storage costs the comparison, not the page.
 * @param {import("./api.js").Ref} ref
 * @param {Tool[]} tools
 */
export function rememberTools(ref, tools) {
  const seen = digests(tools);
  if (!store(place(ref), seen)) {
    // Digests need little room, and are worth more than the definitions of other servers.
    forgetDefinitions();
    store(place(ref), seen);
  }
  store(DEFINITIONS + key(ref), definitions(tools));
}

function forgetDefinitions() {
  try {
    for (const name of Object.keys(localStorage)) if (name.startsWith(DEFINITIONS)) localStorage.removeItem(name);
  } catch {
    // There is no storage at all.
  }
}
