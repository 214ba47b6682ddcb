// @ts-check
// Calls in a table, newest on top.

import { key } from "./api.js";
import { moment } from "./clock.js";
import { element, foreign } from "./dom.js";
import { duration } from "./format.js";
import { objectLink } from "./router.js";
import { Table } from "./table.js";

/** @typedef {import("./api.js").Call} Call */

/** How many calls a page keeps. */
export const KEPT = 500;

/** What a request without a message is for.
 * @type {Record<string, string>} */
const BARE = { DELETE: "end of the session", GET: "stream of messages", "": "response to the server" };

/**
 * @param {string} caption
 * @param {boolean} hasServer whether the calls are of several servers
 * @returns {Table<Call>}
 */
export function callsTable(caption, hasServer) {
  /** @type {import("./table.js").Column<Call>[]} */
  const columns = [
    { id: "time", title: "Time", text: ({ time }) => time, content: ({ time }) => moment(time) },
    {
      id: "server",
      title: "Server",
      text: key,
      content: (call) =>
        element("a", { href: objectLink(call) }, foreign([call.namespace, call.name].filter(Boolean).join("/"))),
    },
    {
      id: "method",
      title: "Method",
      text: ({ method, target }) => `${method} ${target}`,
      content: ({ method, target }) => [
        method && [element("code", null, foreign(method)), " "],
        target && element("strong", null, foreign(target)),
        Object.hasOwn(BARE, method) && element("span", { class: "quiet" }, BARE[method]),
      ],
    },
    {
      id: "caller",
      title: "Caller",
      text: ({ caller }) => caller || " ",
      content: ({ caller }) => (caller ? foreign(caller) : element("span", { class: "quiet" }, "anonymous")),
    },
    { id: "result", title: "Result", text: outcome, content: (call) => result(call) },
    { id: "ms", title: "Took", text: ({ ms }) => duration(ms), isFigure: true },
  ];
  const table = new Table(
    caption,
    columns.filter(({ id }) => hasServer || id !== "server"),
    identity,
  );
  table.root.classList.add("calls", hasServer ? "of-all" : "of-one");
  return table;
}

/** @param {Call} call */
const identity = (call) => `${key(call)} ${call.id} ${call.time}`;

/** @param {Call} call */
const outcome = (call) => `${call.failed} ${call.status} ${call.error} ${call.decidedBy}`;

/** @param {Call} call */
function result(call) {
  return [
    element("span", { class: `phase ${call.failed ? "bad" : "good"}` }, call.failed ? "failed" : "OK"),
    " ",
    call.status ?? "the client did not wait",
    call.error != null && [" JSON-RPC ", call.error],
    call.decidedBy && [" by ", foreign(call.decidedBy)],
  ];
}

/** A bounded list of calls, each once, newest first. */
export class Calls {
  /** @type {Call[]} */
  list = [];
  /** @type {Set<string>} */
  #known = new Set();

  /** @param {Call} call */
  add(call) {
    if (this.#known.has(identity(call))) return;
    this.#known.add(identity(call));
    // Calls end in nearly the order in which they are reported.
    const place = this.list.findIndex((other) => other.time <= call.time);
    this.list.splice(place < 0 ? this.list.length : place, 0, call);
    for (const dropped of this.list.splice(KEPT)) this.#known.delete(identity(dropped));
  }
}

/**
 * Runs a function once in the next frame, however often it is wanted.
 * @param {() => void} run
 * @returns {() => void}
 */
export function onceAFrame(run) {
  let isWaiting = false;
  return () => {
    if (isWaiting) return;
    isWaiting = true;
    requestAnimationFrame(() => ((isWaiting = false), run()));
  };
}
