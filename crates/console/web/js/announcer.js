// @ts-check
// Phase changes for screen readers: at most one sentence every few seconds.

const EVERY = 5000;

export class Announcer {
  #region;
  /** @type {Map<string, string> | null} */
  #phases = null;
  /** @type {Map<string, string>} */
  #pending = new Map();
  /** @type {number | undefined} */
  #timer;

  /**
   * @param {HTMLElement} region with aria-live
   * @param {import("./store.js").Store} store
   */
  constructor(region, store) {
    this.#region = region;
    store.subscribe((changed) => {
      if (!store.isLoaded) return;
      const before = this.#phases;
      this.#phases = before ?? new Map();
      for (const id of before ? changed : store.objects.keys()) {
        const object = store.objects.get(id);
        if (before && object && before.has(id) && before.get(id) !== object.phase) {
          this.#pending.set(id, `${object.name} is ${object.phase || "without a phase"}`);
        }
        if (object) this.#phases.set(id, object.phase);
        else this.#phases.delete(id);
      }
      if (this.#pending.size > 0) this.#timer ??= setTimeout(() => this.#announce(), EVERY);
    });
  }

  #announce() {
    const sentences = [...this.#pending.values()];
    this.#region.textContent =
      sentences.length > 3 ? `${sentences.length} objects changed their phase` : sentences.join(", ");
    this.#pending.clear();
    this.#timer = undefined;
  }
}
