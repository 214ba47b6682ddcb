import assert from "node:assert/strict";
import { test } from "node:test";
import { Store } from "../../../web/js/store.js";
import { summary } from "../fake-objects.mjs";

function fixture() {
  const frames = [];
  const batches = [];
  const store = new Store((run) => frames.push(run));
  store.subscribe((changed) => batches.push([...changed]));
  return { store, batches, frame: () => frames.splice(0).forEach((run) => run()) };
}

test("a thousand events of one frame are one update", () => {
  const { store, batches, frame } = fixture();
  for (let n = 0; n < 1000; n++) store.put(summary({ name: `s${n % 2}`, phase: String(n) }));
  frame();
  assert.deepEqual(batches, [["MCPServer/default/s0", "MCPServer/default/s1"]]);
});

test("an event that changes nothing updates nothing", () => {
  const { store, batches, frame } = fixture();
  store.put(summary({ name: "a" }));
  frame();
  store.put(summary({ name: "a" }));
  frame();
  assert.equal(batches.length, 1);
});

test("a list replaces everything, and figures of unknown objects are ignored", () => {
  const { store, frame } = fixture();
  store.put(summary({ name: "old" }));
  store.replace([summary({ name: "new" })]);
  const traffic = { perSecond: 1, errorsPerSecond: 0, p50: null, p99: null };
  store.measure([
    { kind: "MCPServer", namespace: "default", name: "new", traffic },
    { kind: "MCPServer", namespace: "default", name: "old", traffic },
  ]);
  frame();
  assert.deepEqual([...store.objects.values()], [summary({ name: "new", traffic })]);
});
