// @ts-check
// The connections of users at identity providers, for those who may see them. There are no tokens among them.

import { moment } from "../clock.js";
import { element, foreign } from "../dom.js";
import { count } from "../format.js";
import { Table } from "../table.js";

/**
 * @typedef {import("../api.js").Connection} Connection
 * @typedef {import("../api.js").Connections} Connections
 */

/** @param {Connections} connections */
export function connections({ available, total, shown }) {
  if (!available) {
    return element("p", { class: "problem" }, "The storage of the authorization server does not respond: they are not known now.");
  }
  if (total === 0) return element("p", { class: "quiet" }, "No user is connected.");
  const numbered = shown.map((connection, index) => ({ ...connection, index }));
  /** @type {import("../table.js").Column<Connection & {index: number}>[]} */
  const columns = [
    { id: "user", title: "User", text: ({ user }) => user, content: ({ user }) => element("code", null, foreign(user)) },
    { id: "provider", title: "Provider", text: ({ provider }) => provider, content: ({ provider }) => foreign(provider) },
    { id: "account", title: "Account there", text: ({ account }) => account, content: ({ account }) => foreign(account) },
    { id: "since", title: "Since", text: ({ since }) => since ?? "", content: ({ since }) => moment(since) },
    { id: "until", title: "Validity", text: ({ until }) => until ?? "", content: validity },
  ];
  const table = new Table("Connections of users, newest first", columns, ({ index }) => String(index));
  table.root.classList.add("connections");
  table.show(numbered);
  const rest = total - shown.length;
  return [table.root, rest > 0 && element("p", { class: "quiet" }, `and ${count(rest)} more`)];
}

/** @param {Connection} connection */
function validity({ until, renewed }) {
  if (renewed) return "renewed when used";
  if (!until) return "does not expire";
  const isPast = Date.parse(until) <= Date.now();
  return [isPast ? element("span", { class: "phase bad" }, "expired") : "expires", " ", moment(until)];
}
