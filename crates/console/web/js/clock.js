// @ts-check
// Times that stay true while they are looked at.

import { element } from "./dom.js";
import { NONE, relative } from "./format.js";

const EVERY = 5000;

/** @param {string | null | undefined} timestamp RFC 3339 */
export function moment(timestamp) {
  const time = Date.parse(timestamp ?? "");
  if (Number.isNaN(time)) return NONE;
  const date = new Date(time);
  return element("time", { datetime: date.toISOString(), title: date.toLocaleString() }, relative(time, Date.now()));
}

export function startClock() {
  setInterval(() => {
    const now = Date.now();
    for (const time of document.querySelectorAll("time")) {
      const text = relative(Date.parse(time.dateTime), now);
      if (time.textContent !== text) time.textContent = text;
    }
  }, EVERY);
}
