// @ts-check
// Server-sent events of a response, by https://html.spec.whatwg.org/multipage/server-sent-events.html. EventSource can neither POST
// nor send headers.

/** @typedef {{event: string, data: string, id: string | null, retry: number | null}} Event */

export class EventParser {
  #rest = "";
  /** @type {Event} */
  #event = empty();

  /**
   * The events that a piece of the stream completes.
   * @param {string} piece
   * @returns {Event[]}
   */
  push(piece) {
    const text = this.#rest + piece;
    // A carriage return at the end may be the first half of CRLF.
    const lines = (text.endsWith("\r") ? text.slice(0, -1) : text).split(/\r\n|\n|\r/);
    this.#rest = (lines.pop() ?? "") + (text.endsWith("\r") ? "\r" : "");
    return lines.flatMap((line) => this.#line(line));
  }

  /**
   * @param {string} line
   * @returns {Event[]}
   */
  #line(line) {
    if (line === "") {
      const event = this.#event;
      this.#event = empty();
      if (event.data === "" && event.id === null && event.retry === null) return [];
      return [{ ...event, data: event.data.slice(0, -1) }];
    }
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") this.#event.data += `${value}\n`;
    if (name === "event") this.#event.event = value;
    if (name === "id" && !value.includes("\0")) this.#event.id = value;
    if (name === "retry" && /^\d+$/.test(value)) this.#event.retry = Number(value);
    return [];
  }
}

/** @returns {Event} */
const empty = () => ({ event: "message", data: "", id: null, retry: null });

/**
 * @param {ReadableStream<Uint8Array>} stream
 * @param {() => void} [alive] is called for every sign of life, comments included
 * @returns {AsyncGenerator<Event>}
 */
export async function* events(stream, alive) {
  const parser = new EventParser();
  const decoder = new TextDecoder();
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      alive?.();
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
