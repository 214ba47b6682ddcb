// @ts-check
// The tools that this browser saw at a server, as digests: a server that changes a description behind one's back is caught.

import { key } from "./api.js";
import { sha256 } from "./sha256.js";
import { canonical } from "./text.js";

/**
 * @typedef {import("./mcp.js").Tool} Tool
 * @typedef {Record<string, string>} Seen a digest for each name
 * @typedef {{marks: Map<string, "new" | "changed">, missing: string[]}} Difference
 */

/**
 * @param {Tool[]} tools
 * @returns {Seen}
 */
export function digests(tools) {
  // `_meta` is for programs, and may differ from one response to the next.
  return Object.fromEntries(tools.map((tool) => [tool.name, sha256(canonical({ ...tool, _meta: undefined }))]));
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

/** @param {import("./api.js").Ref} ref */
const place = (ref) => `skep.tools/${key(ref)}`;

/**
 * @param {import("./api.js").Ref} ref
 * @returns {Seen | null}
 */
export function remembered(ref) {
  try {
    return JSON.parse(localStorage.getItem(place(ref)) ?? "null");
  } catch {
    return null;
  }
}

/**
 * @param {import("./api.js").Ref} ref
 * @param {Seen} seen
 */
export function rememberTools(ref, seen) {
  try {
    localStorage.setItem(place(ref), JSON.stringify(seen));
  } catch {
    // A full or forbidden storage costs the comparison, not the page.
  }
}
