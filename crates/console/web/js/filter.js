// @ts-check
// Which rows are shown, and in which order.

import { isReady } from "./phase.js";

/**
 * @typedef {import("./api.js").Summary} Summary
 * @typedef {import("./api.js").Call} Call
 * @typedef {{text: string, kind: string, namespace: string, unready: boolean}} Filter
 */

/** Kinds that serve MCP themselves. */
export const SERVERS = ["MCPServer", "MCPRemoteProxy", "VirtualMCPServer"];
/** Kinds of the first table; all others are configurations. */
export const WORKLOADS = [...SERVERS, "MCPGroup"];

/**
 * @param {string} text words, all of which must occur
 * @returns {(fields: string[]) => boolean}
 */
export function matcher(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return (fields) => {
    if (words.length === 0) return true;
    const all = fields.join("\n").toLowerCase();
    return words.every((word) => all.includes(word));
  };
}

/**
 * @param {Filter} filter
 * @returns {(summary: Summary) => boolean}
 */
export function objectFilter({ text, kind, namespace, unready }) {
  const matches = matcher(text);
  return (object) =>
    (!kind || object.kind === kind) &&
    (!namespace || object.namespace === namespace) &&
    (!unready || !isReady(object)) &&
    matches([
      object.name,
      object.namespace,
      object.kind,
      object.phase,
      object.message,
      object.transport,
      object.group,
      object.url,
    ]);
}

/**
 * @param {string} text
 * @returns {(call: Call) => boolean}
 */
export function callFilter(text) {
  const matches = matcher(text);
  return (call) =>
    matches([
      call.method,
      call.target,
      call.caller || "anonymous",
      String(call.status ?? ""),
      String(call.error ?? ""),
      call.failed ? "failed" : "OK",
      call.decidedBy,
      `${call.kind}/${call.namespace}/${call.name}`,
    ]);
}

/**
 * @template T
 * @param {(item: T) => string | number | null} order values without an order come last, in either direction
 * @param {boolean} isDescending
 * @param {(item: T) => string} key decides among equals, so that rows do not jump
 * @returns {(a: T, b: T) => number}
 */
export function comparator(order, isDescending, key) {
  return (a, b) => {
    const [left, right] = [order(a), order(b)];
    if (left !== right) {
      if (left === null) return 1;
      if (right === null) return -1;
      return left < right === isDescending ? 1 : -1;
    }
    return key(a) < key(b) ? -1 : 1;
  };
}
