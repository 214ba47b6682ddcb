// @ts-check
// What the page knows of the cluster. Summaries are never changed in place, so that views compare them by identity.

import { key } from "./api.js";

/**
 * @typedef {import("./api.js").Ref} Ref
 * @typedef {import("./api.js").Summary} Summary
 * @typedef {import("./api.js").Traffic} Traffic
 * @typedef {(changed: ReadonlySet<string>) => void} Listener
 */

export class Store {
  /** @type {Map<string, Summary>} */
  objects = new Map();
  isLoaded = false;
  /** @type {Set<Listener>} */
  #listeners = new Set();
  /** @type {Set<string>} */
  #changed = new Set();
  #isScheduled = false;
  #schedule;

  /** @param {(run: () => void) => void} schedule runs once per frame, however many events came */
  constructor(schedule) {
    this.#schedule = schedule;
  }

  /** @param {Summary[]} summaries */
  replace(summaries) {
    const present = new Set(summaries.map(key));
    for (const old of this.objects.keys()) if (!present.has(old)) this.#change(old, null);
    for (const summary of summaries) this.put(summary);
    this.isLoaded = true;
    this.#announce();
  }

  /** @param {Summary} summary */
  put(summary) {
    const id = key(summary);
    if (JSON.stringify(this.objects.get(id)) !== JSON.stringify(summary)) this.#change(id, summary);
  }

  /** @param {Ref} ref */
  remove(ref) {
    this.#change(key(ref), null);
  }

  /** @param {(Ref & {traffic: Traffic | null})[]} updates */
  measure(updates) {
    for (const { traffic, ...ref } of updates) {
      const old = this.objects.get(key(ref));
      if (old) this.#change(key(ref), { ...old, traffic });
    }
  }

  /**
   * @param {Listener} listener
   * @returns {() => void} ends the subscription
   */
  subscribe(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * @param {string} id
   * @param {Summary | null} summary
   */
  #change(id, summary) {
    if (summary) this.objects.set(id, summary);
    else this.objects.delete(id);
    this.#changed.add(id);
    this.#announce();
  }

  #announce() {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#schedule(() => {
      this.#isScheduled = false;
      const changed = this.#changed;
      this.#changed = new Set();
      for (const listener of [...this.#listeners]) listener(changed);
    });
  }
}
