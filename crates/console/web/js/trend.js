// @ts-check
// A figure with its last two minutes as a line. The browser samples it: the console keeps no history.

import { drawing, element, set } from "./dom.js";
import { rate } from "./format.js";

const SAMPLES = 120;
const HEIGHT = 32;

export class Trend {
  /** @type {number[]} */
  #samples = [];
  #line = drawing("polyline", { points: "" });
  #figure = element("output", null, "–");

  /** @param {string} title */
  constructor(title) {
    const line = drawing(
      "svg",
      { viewBox: `0 0 ${SAMPLES} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" },
      this.#line,
    );
    set(this.#figure, { "aria-live": "off" });
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
 * Runs a function now and every second, for as long as the page is open.
 * @param {() => void} run
 * @returns {() => void} stops it
 */
export function everySecond(run) {
  run();
  const timer = setInterval(run, 1000);
  return () => clearInterval(timer);
}
