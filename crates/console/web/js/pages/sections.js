// @ts-check
// The parts of an object's page that only depend on what is known of it.

import { moment } from "../clock.js";
import { button, element, foreign, outside } from "../dom.js";
import { SERVERS } from "../filter.js";
import { count } from "../format.js";
import { badge, isReady } from "../phase.js";
import { link, objectLink } from "../router.js";
import { json } from "../text.js";

/** @typedef {import("../api.js").Detail} Detail */

/** @param {Detail} object */
export function heading(object) {
  return [
    element("p", { class: "state" }, badge(object.phase), object.since && [" since ", moment(object.since)]),
    object.message && element("p", { class: isReady(object) ? "" : "problem" }, foreign(object.message)),
    object.url && element("p", { class: "address" }, element("code", null, foreign(object.url)), " ", copy(object.url)),
    element(
      "p",
      { class: "quiet" },
      object.transport && ["Transport ", element("code", null, foreign(object.transport)), " "],
      object.group && [
        "in group ",
        element("a", { href: link("object", ["MCPGroup", object.namespace, object.group]) }, foreign(object.group)),
      ],
    ),
    element(
      "p",
      { class: "actions" },
      SERVERS.includes(object.kind) && element("a", { href: objectLink(object, "try"), class: "action" }, "Try it"),
      outside(object.links),
    ),
  ];
}

/** @param {string} text */
function copy(text) {
  const press = button("Copy", () => {
    navigator.clipboard.writeText(text).then(
      () => (press.textContent = "Copied"),
      () => press.remove(),
    );
  });
  // Browsers have a clipboard on secure origins only.
  return navigator.clipboard && press;
}

/** Those that the others amount to come first.
 * @type {Record<string, number>} */
const RANKS = { Ready: 0, Valid: 1 };

/** @param {Detail["conditions"]} conditions */
export function conditions(conditions) {
  const sorted = conditions.toSorted((a, b) => (RANKS[a.type] ?? 2) - (RANKS[b.type] ?? 2));
  return element(
    "ul",
    { class: "plain" },
    sorted.map(({ type, status, reason, message, lastTransitionTime }) =>
      element(
        "li",
        null,
        element(
          "p",
          null,
          element("strong", null, foreign(type)),
          " ",
          foreign(status),
          " ",
          element("code", null, foreign(reason)),
          " ",
          element("span", { class: "quiet" }, moment(lastTransitionTime)),
        ),
        message && element("p", null, foreign(message)),
      ),
    ),
  );
}

/**
 * On one line, if it fits.
 * @param {unknown} value
 */
function brief(value) {
  if (typeof value === "string") return value;
  const line = JSON.stringify(value) ?? "";
  return line.length < 60 ? line : json(value);
}

/** @param {Detail["configuration"]} settings */
export function configuration(settings) {
  return element(
    "dl",
    { class: "settings" },
    settings.map(({ field, value, origin, from }) => [
      element("dt", null, foreign(field)),
      element(
        "dd",
        null,
        element("code", null, foreign(brief(value))),
        " ",
        element(
          "span",
          { class: "tag" },
          origin === "reference" ? ["from ", foreign(from)] : origin === "default" ? "default" : foreign(origin),
        ),
      ),
    ]),
  );
}

/** @param {NonNullable<Detail["objects"]>} objects */
export function objects(objects) {
  return element(
    "ul",
    { class: "plain" },
    objects.map(({ kind, name, state }) =>
      element(
        "li",
        null,
        foreign(kind),
        " ",
        element("strong", null, foreign(name)),
        " ",
        element("span", { class: "quiet" }, foreign(state)),
      ),
    ),
  );
}

/** How many events are shown before one asks for the rest. */
const SHOWN_EVENTS = 10;

/**
 * Why containers restarted, and then what happened.
 * @param {Detail} object
 */
export function events({ events, restarts, seesEvents }) {
  const rest = events.slice(SHOWN_EVENTS);
  return [
    restarts.length > 0 &&
      element(
        "ul",
        { class: "plain restarts" },
        restarts.map(({ sentence, lastLine }) =>
          element(
            "li",
            null,
            element("p", { class: "problem" }, foreign(sentence)),
            lastLine && element("p", null, element("code", null, foreign(lastLine))),
          ),
        ),
      ),
    !seesEvents &&
      element("p", { class: "quiet" }, "You may not list the events of this namespace: only changes of the object itself are shown."),
    eventList(events.slice(0, SHOWN_EVENTS)),
    rest.length > 0 && element("details", null, element("summary", null, `${count(rest.length)} earlier events`), eventList(rest)),
  ];
}

/** @param {Detail["events"]} events */
const eventList = (events) =>
  element(
    "ul",
    { class: "plain" },
    events.map(({ time, type, reason, message, object, count: times }) =>
      element(
        "li",
        null,
        element(
          "p",
          null,
          type === "Warning" && [element("span", { class: "phase bad" }, "Warning"), " "],
          foreign(message || reason),
        ),
        element(
          "p",
          { class: "quiet" },
          message && [foreign(reason), " · "],
          foreign(object),
          " · ",
          moment(time),
          times > 1 && ` · ${count(times)} times`,
        ),
      ),
    ),
  );
