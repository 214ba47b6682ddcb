import assert from "node:assert/strict";
import { test } from "node:test";
import { EventParser, events } from "../../../web/js/sse.js";

const STREAM =
  ': comment\r\n\r\nevent: message\r\nid: 1\r\ndata: {"a":\r\ndata: 1}\r\n\r\nretry: 50\ndata\n\nid: 2\ndata:  x\r\rdata: ü€\n\ndata: cut';
const EXPECTED = [
  { event: "message", data: '{"a":\n1}', id: "1", retry: null },
  { event: "message", data: "", id: null, retry: 50 },
  { event: "message", data: " x", id: "2", retry: null },
  { event: "message", data: "ü€", id: null, retry: null },
];

test("events are the same wherever the stream is cut, inside characters as well", async () => {
  const bytes = new TextEncoder().encode(STREAM);
  for (let size = 1; size <= bytes.length; size++) {
    const stream = new ReadableStream({
      start(controller) {
        for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
        controller.close();
      },
    });
    const found = [];
    for await (const event of events(stream)) found.push(event);
    assert.deepEqual(found, EXPECTED, `pieces of ${size}`);
  }
});

test("a comment is a sign of life and no event", async () => {
  let signs = 0;
  const stream = new Blob([":\n\n"]).stream();
  for await (const event of events(stream, () => signs++)) assert.fail(JSON.stringify(event));
  assert.equal(signs, 1);
});

test("an unfinished event waits for its end", () => {
  const parser = new EventParser();
  assert.deepEqual(parser.push("data: a\n"), []);
  assert.deepEqual(
    parser.push("\n").map(({ data }) => data),
    ["a"],
  );
});
