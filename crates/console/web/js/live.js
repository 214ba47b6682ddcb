// @ts-check
// The stream of events. A page has one, since a browser opens only six connections to an origin, for all tabs together.

import * as api from "./api.js";
import { pause } from "./pause.js";
import { events } from "./sse.js";
import { authorization } from "./token.js";

/**
 * @typedef {import("./api.js").Call} Call
 * @typedef {import("./api.js").Connections} Connections
 * @typedef {"live" | "connecting" | "paused"} State
 */

const FIRST_DELAY = 1000;
const LAST_DELAY = 15_000;
/** The console sends something every 15 s: a connection without a sign of life for so long is dead. */
const SILENCE = 45_000;

export class Live {
  #store;
  #report;
  #expire;
  #connection = new AbortController();
  /** Which calls are wanted: all, KIND/NAMESPACE/NAME, or none; null before the first page. */
  #calls = /** @type {string | null} */ (null);
  /** @type {(call: Call) => void} */
  #called = () => {};
  /** @type {(connections: Connections | null) => void} */
  #connected = () => {};

  /**
   * @param {import("./store.js").Store} store
   * @param {(state: State, reason?: string) => void} report
   * @param {(error: unknown) => void} expire is called when the sign-in has ended
   */
  constructor(store, report, expire) {
    this.#store = store;
    this.#report = report;
    this.#expire = expire;
    document.addEventListener("visibilitychange", () => this.#connect());
  }

  /**
   * @param {string} calls
   * @param {(call: Call) => void} called
   * @param {(connections: Connections | null) => void} [connected] gets the connections of users of the one object
   */
  watch(calls, called, connected = () => {}) {
    this.#called = called;
    this.#connected = connected;
    if (this.#calls === calls) return;
    this.#calls = calls;
    this.#connect();
  }

  close() {
    this.#calls = null;
    this.#connection.abort();
  }

  async #connect() {
    this.#connection.abort();
    if (this.#calls === null) return;
    if (document.hidden) return this.#report("paused");
    const connection = new AbortController();
    this.#connection = connection;
    const backoff = { delay: FIRST_DELAY };
    let reason = "";
    while (!connection.signal.aborted) {
      this.#report("connecting", reason);
      try {
        reason = "";
        await this.#follow(connection.signal, () => (backoff.delay = FIRST_DELAY));
      } catch (error) {
        if (connection.signal.aborted) return;
        if (error instanceof api.ApiError && error.status === 401) return this.#expire(error);
        if (error instanceof api.ApiError) reason = error.message;
      }
      this.#report("connecting", reason);
      await pause(backoff.delay, connection.signal).catch(() => {});
      backoff.delay = Math.min(backoff.delay * 2, LAST_DELAY);
    }
  }

  /**
   * Follows one stream to its end.
   * @param {AbortSignal} signal
   * @param {() => void} connected
   */
  async #follow(signal, connected) {
    const attempt = new AbortController();
    const either = AbortSignal.any([signal, attempt.signal]);
    const query = this.#calls ? `?calls=${encodeURIComponent(this.#calls)}` : "";
    const response = await fetch(`/api/events${query}`, { headers: authorization(), signal: either });
    if (!response.ok || !response.body) throw await api.failure(response);
    /** @type {number | undefined} */
    let watchdog;
    const live = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => attempt.abort(), SILENCE);
    };
    live();
    let loading = this.#load(either);
    loading.then(connected, (error) => attempt.abort(error));
    try {
      for await (const { event, data } of events(response.body, live)) {
        // An event that arrives while the list is read may be newer than the list: it is applied after it.
        await loading;
        if (event === "resync") {
          loading = this.#load(either);
          loading.catch((error) => attempt.abort(error));
        } else if (data) this.#apply(event, JSON.parse(data));
      }
      throwIfFailed(attempt.signal);
    } catch (error) {
      throwIfFailed(attempt.signal);
      throw error;
    } finally {
      clearTimeout(watchdog);
      attempt.abort();
    }
  }

  /** @param {AbortSignal} signal */
  async #load(signal) {
    const summaries = await api.objects();
    if (signal.aborted) return;
    this.#store.replace(summaries);
    this.#report("live");
  }

  /**
   * @param {string} event
   * @param {any} data
   */
  #apply(event, data) {
    if (event === "object") this.#store.put(data);
    else if (event === "deleted") this.#store.remove(data);
    else if (event === "traffic") this.#store.measure(data);
    else if (event === "call") this.#called(data);
    else if (event === "connections" && api.key(data.key) === this.#calls) this.#connected(data.connections);
  }
}

/** @param {AbortSignal} signal aborted with the error of a request beside the stream */
function throwIfFailed(signal) {
  if (signal.reason instanceof api.ApiError) throw signal.reason;
}
