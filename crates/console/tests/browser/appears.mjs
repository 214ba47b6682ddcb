// How long after an event the page shows it.

import assert from "node:assert/strict";

const PATIENCE = 180_000;
/** The most that may pass until the page shows an event. */
const LIMIT = 1_000;

/** What has happened, and those who wait for it. */
export class Happenings {
  #waiting = new Set();

  /** Waits for the first that meets the predicate from now on, and returns when it happened. */
  next(what, predicate) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${what}: not within ${PATIENCE / 1000} s`)), PATIENCE);
      const waiting = (time, one) => {
        if (!predicate(one)) return;
        clearTimeout(timer);
        this.#waiting.delete(waiting);
        resolve(time);
      };
      this.#waiting.add(waiting);
    });
  }

  add(time, one) {
    for (const waiting of [...this.#waiting]) waiting(time, one);
  }
}

/** The rows of the overview, whenever they change. */
export async function watchRows(page) {
  const rows = new Happenings();
  await page.exposeFunction("showRows", (time, texts) => rows.add(time, texts));
  await page.evaluate(() => {
    const show = () => {
      const texts = [...document.querySelectorAll("tbody tr")].map((row) => row.textContent);
      globalThis.showRows(Date.now(), texts);
    };
    new MutationObserver(show).observe(document.getElementById("main"), { subtree: true, childList: true, characterData: true });
  });
  return rows;
}

/** Does something, and measures how long after its event the page shows it. */
export async function appears(what, { events, rows, say }, act, isEvent, isShown) {
  const both = Promise.all([events.next(what, isEvent), rows.next(`${what} on the page`, isShown)]);
  await act();
  const [event, shown] = await both;
  say(`${what}: the page shows it ${shown - event} ms after the event`);
  assert.ok(shown - event < LIMIT, `${what} is shown ${shown - event} ms after the event`);
}
