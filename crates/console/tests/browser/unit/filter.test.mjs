import assert from "node:assert/strict";
import { test } from "node:test";
import { callFilter, comparator, objectFilter } from "../../../web/js/filter.js";
import { call, summary } from "../fake-objects.mjs";

const ALL = { text: "", kind: "", namespace: "", unready: false };

test("a filter keeps what has all words, in any field and case", () => {
  const demo = summary({ name: "demo", namespace: "team-a", phase: "Failed", message: "image not found" });
  assert.ok(objectFilter({ ...ALL, text: "DEMO found" })(demo));
  assert.ok(!objectFilter({ ...ALL, text: "demo lost" })(demo));
});

test("kind, namespace and readiness narrow a filter", () => {
  const failed = summary({ name: "a", phase: "Failed" });
  assert.ok(objectFilter({ ...ALL, kind: "MCPServer", namespace: "default", unready: true })(failed));
  assert.ok(!objectFilter({ ...ALL, kind: "MCPGroup" })(failed));
  assert.ok(!objectFilter({ ...ALL, namespace: "other" })(failed));
  assert.ok(!objectFilter({ ...ALL, unready: true })(summary({ name: "b", phase: "Ready" })));
});

test("a configuration without a phase is not unready", () => {
  assert.ok(!objectFilter({ ...ALL, unready: true })(summary({ kind: "MCPToolConfig", name: "c", phase: "" })));
});

test("calls are found by method, tool, caller, status and decision", () => {
  const found = call(1, { caller: "", status: null, error: -32602, failed: true, decidedBy: "authorization" });
  for (const text of ["tools/call", "echo", "anonymous", "-32602", "failed authorization", "default/demo"])
    assert.ok(callFilter(text)(found), text);
  assert.ok(!callFilter("bob")(found));
});

test("rows without a figure come last in either direction, and equal ones keep their order", () => {
  const rows = [
    ["b", 1],
    ["a", 1],
    ["c", null],
    ["d", 5],
  ];
  const names = (isDescending) =>
    rows
      .toSorted(
        comparator(
          (row) => row[1],
          isDescending,
          (row) => row[0],
        ),
      )
      .map(([name]) => name)
      .join("");
  assert.equal(names(false), "abdc");
  assert.equal(names(true), "dabc");
});
