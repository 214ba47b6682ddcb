// @ts-check
// A phase as a word with a shape. The colour only repeats them.

import { element, foreign } from "./dom.js";
import { NONE } from "./format.js";

/** @typedef {"good" | "waiting" | "bad" | "off"} Mood */

/** Phases, types of conditions, and the states of backends.
 * @type {Record<string, Mood>} */
const MOODS = {
  Ready: "good",
  Valid: "good",
  Running: "good",
  Pending: "waiting",
  Downloading: "waiting",
  Terminating: "waiting",
  Unknown: "waiting",
  Stopped: "off",
  "": "off",
};

/**
 * @param {string} phase
 * @returns {Mood}
 */
export function mood(phase) {
  const key = phase.charAt(0).toUpperCase() + phase.slice(1);
  // Everything else is a problem: Failed, Degraded, or the reason of a condition, of which there are many.
  return Object.hasOwn(MOODS, key) ? MOODS[key] : "bad";
}

/** @param {{phase: string}} object */
export function isReady(object) {
  // A kind without a phase has nothing to wait for.
  return object.phase === "" || mood(object.phase) === "good";
}

/**
 * Whether it responds to requests, if perhaps not to all of them.
 * @param {{phase: string}} object
 */
export function isServing(object) {
  return isReady(object) || object.phase === "Degraded";
}

/** @param {string} phase */
export function badge(phase) {
  return phase ? element("span", { class: `phase ${mood(phase)}` }, foreign(phase)) : NONE;
}
