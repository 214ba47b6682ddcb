// @ts-check
// A figure with its last minute as a line. The browser samples it: the console keeps no history.

import { drawing, element, set } from "./dom.js";
import { NONE, rate } from "./format.js";

const SAMPLES = 60;
const HEIGHT = 32;

export class Trend {
  /** @type {number[]} */
  #samples = [];
  #line = drawing("polyline", { points: "" });
  #figure = element("output", { "aria-live": "off" }, NONE);

  /** @param {string} title */
  constructor(title) {
    const line = drawing(
      "svg",
      { viewBox: `0 0 ${SAMPLES} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" },
      this.#line,
    );
    this.root = element("div", { class: "tile" }, element("span", null, title), this.#figure, line);
  }

  /** @param {number} value */
  sample(value) {
    this.#samples.push(value);
    if (this.#samples.length > SAMPLES) this.#samples.shift();
    this.#figure.textContent = rate(value);
    const top = Math.max(...this.#samples, Number.MIN_VALUE);
    const start = SAMPLES - this.#samples.length;
    const points = this.#samples.map((sample, index) => `${start + index},${HEIGHT - 1 - (sample / top) * (HEIGHT - 3)}`);
    set(this.#line, { points: points.join(" ") });
  }
}

/**
 * Samples every second, and at once when the objects are known.
 * @param {import("./store.js").Store} store
 * @param {() => void} sample
 * @returns {() => void} stops it
 */
export function sampling(store, sample) {
  const timer = setInterval(() => store.isLoaded && sample(), 1000);
  if (store.isLoaded) sample();
  const unsubscribe = store.subscribe(() => (unsubscribe(), sample()));
  return () => (unsubscribe(), clearInterval(timer));
}
