// @ts-check
// Figures and times as people read them.

/** What is shown where there is nothing. */
export const NONE = "–";

/** By the number of digits after the point. Making one is slow: a table formats thousands of figures. */
const FORMATS = [0, 1, 2].map((maximumFractionDigits) => new Intl.NumberFormat("en", { maximumFractionDigits }));

/** @type {[limit: number, seconds: number, unit: string][]} */
const UNITS = [
  [60, 1, "s"],
  [3600, 60, "min"],
  [86_400, 3600, "h"],
  [Infinity, 86_400, "d"],
];

/**
 * @param {number} time in milliseconds
 * @param {number} now
 */
export function relative(time, now) {
  const seconds = Math.round((now - time) / 1000);
  const distance = Math.abs(seconds);
  // Clocks of two machines differ a little.
  if (distance < 5) return "just now";
  const [, size, unit] = UNITS.find(([limit]) => distance < limit) ?? UNITS[3];
  const amount = `${Math.floor(distance / size)} ${unit}`;
  return seconds > 0 ? `${amount} ago` : `in ${amount}`;
}

/** @param {number | null | undefined} value */
export function count(value) {
  return value == null ? NONE : FORMATS[0].format(value);
}

/** @param {number | null | undefined} value */
export function rate(value) {
  if (value == null) return NONE;
  if (value === 0) return "0";
  if (value < 0.01) return "<0.01";
  return FORMATS[value < 10 ? 2 : value < 100 ? 1 : 0].format(value);
}

/** @param {number | null | undefined} ms */
export function duration(ms) {
  if (ms == null) return NONE;
  if (ms >= 10_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${FORMATS[ms < 10 ? 1 : 0].format(ms)} ms`;
}

/** @param {number} characters */
export function size(characters) {
  if (characters < 1000) return `${characters} characters`;
  if (characters < 1_000_000) return `${Math.round(characters / 1000)} thousand characters`;
  return `${(characters / 1_000_000).toFixed(1)} million characters`;
}
