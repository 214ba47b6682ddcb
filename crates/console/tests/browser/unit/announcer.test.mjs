import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { Announcer } from "../../../web/js/announcer.js";
import { Store } from "../../../web/js/store.js";
import { summary } from "../fake-objects.mjs";

test("changed phases are announced, together and after a while; the first list, figures and new objects are not", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const region = { textContent: "" };
  const store = new Store((run) => run());
  new Announcer(region, store);
  const objects = (phase) => ["a", "b", "c", "d"].map((name) => summary({ name, phase }));
  store.replace(objects("Ready"));
  store.put(summary({ name: "new", phase: "Pending" }));
  store.put(summary({ name: "b", phase: "Ready", tools: 3 }));
  mock.timers.tick(10_000);
  assert.equal(region.textContent, "");
  store.put(summary({ name: "a", phase: "Pending" }));
  store.put(summary({ name: "a", phase: "Failed" }));
  store.put(summary({ name: "b", phase: "Pending" }));
  assert.equal(region.textContent, "");
  mock.timers.tick(10_000);
  assert.equal(region.textContent, "a is Failed, b is Pending");
  for (const object of objects("Stopped")) store.put(object);
  mock.timers.tick(10_000);
  assert.equal(region.textContent, "4 objects changed their phase");
  mock.timers.reset();
});
