import assert from "node:assert/strict";
import { test } from "node:test";
import { collected, fields } from "../../../web/js/schema.js";

const object = (properties, required = []) => ({ type: "object", properties, required });
const controls = (schema, initial) =>
  Object.fromEntries(fields(schema, initial).map(({ name, control }) => [name, control]));

test("every simple type has a control of its own, and everything else is JSON", () => {
  const schema = object({
    text: { type: "string" },
    number: { type: "number" },
    integer: { type: "integer" },
    boolean: { type: "boolean" },
    choice: { enum: ["a", 1, null] },
    titled: { oneOf: [{ const: "r", title: "Red" }] },
    choices: { type: "array", items: { anyOf: [{ const: "r", title: "Red" }, { const: "g" }] } },
    list: { type: "array", items: { type: "string" } },
    anything: {},
    either: { anyOf: [{ type: "string" }, { type: "number" }] },
    both: { type: ["string", "number"] },
    group: object({ inner: { type: "string" }, deeper: object({ x: { type: "string" } }) }),
    free: { type: "object" },
  });
  assert.deepEqual(controls(schema), {
    text: "text",
    number: "number",
    integer: "integer",
    boolean: "boolean",
    choice: "choice",
    titled: "choice",
    choices: "choices",
    list: "json",
    anything: "json",
    either: "json",
    both: "json",
    group: "group",
    free: "json",
  });
  const group = fields(schema).find(({ name }) => name === "group");
  assert.deepEqual(
    group.fields.map(({ control }) => control),
    ["text", "json"],
  );
});

test("what may be null is what it may be otherwise", () => {
  const schema = object({
    a: { anyOf: [{ type: "integer" }, { type: "null" }], title: "A" },
    b: { type: ["string", "null"] },
  });
  assert.deepEqual(controls(schema), { a: "integer", b: "text" });
  assert.equal(fields(schema)[0].title, "A");
});

test("local references are followed, and circular ones end", () => {
  const schema = {
    ...object({
      a: { $ref: "#/$defs/name" },
      b: { $ref: "#/$defs/loop" },
      c: { $ref: "#/$defs/missing" },
      d: { $ref: "http://x" },
    }),
    $defs: { name: { type: "string", description: "a name" }, loop: { $ref: "#/$defs/loop" } },
  };
  assert.deepEqual(controls(schema), { a: "text", b: "json", c: "json", d: "json" });
  assert.equal(fields(schema)[0].description, "a name");
});

test("a schema that its properties do not describe has no form", () => {
  for (const schema of [{}, { type: "object" }, null, true, { ...object({}), oneOf: [] }])
    assert.equal(fields(schema), null);
  assert.deepEqual(fields(object({})), []);
});

test("bounds are shown in words", () => {
  const schema = object({
    a: { type: "integer", minimum: 1, maximum: 10 },
    b: { type: "string", maxLength: 5, format: "email" },
    c: { type: "number", minimum: 0 },
  });
  assert.deepEqual(
    fields(schema).map(({ hint }) => hint),
    ["1 to 10", "email, at most 5 characters", "at least 0"],
  );
});

test("values that are given replace defaults", () => {
  const schema = object({
    a: { type: "string", default: "x" },
    b: { type: "string", default: "y" },
    c: { enum: ["p"], default: "q" },
  });
  assert.deepEqual(
    fields(schema, { a: "z" }).map(({ initial }) => initial),
    ["z", "y", undefined],
  );
});

test("entries become the value of the schema's type, and empty optional ones are left out", () => {
  const schema = object(
    {
      text: { type: "string" },
      empty: { type: "string" },
      needed: { type: "string" },
      number: { type: "number" },
      flag: { type: "boolean" },
      choice: { enum: ["a", 7] },
      choices: { type: "array", items: { enum: ["r", "g"] } },
      list: { type: "array" },
      group: object({ x: { type: "integer" } }),
      unset: object({ y: { type: "integer" } }),
    },
    ["needed"],
  );
  const entries = new Map([
    ["text", "hello\n"],
    ["number", "-1.5e3"],
    ["flag", "false"],
    ["choice", "1"],
    ["choices", ["1"]],
    ["list", "[1, 2]"],
    ["group", new Map([["x", "3"]])],
    ["unset", new Map([["y", ""]])],
  ]);
  assert.deepEqual(collected(fields(schema), entries), {
    value: {
      text: "hello\n",
      needed: "",
      number: -1500,
      flag: false,
      choice: 7,
      choices: ["g"],
      list: [1, 2],
      group: { x: 3 },
    },
    faults: [],
  });
});

test("what cannot be sent is reported with its path", () => {
  const schema = object(
    { a: { type: "integer" }, b: {}, c: { type: "number" }, group: object({ x: { type: "integer" } }) },
    ["c"],
  );
  const { faults } = collected(
    fields(schema),
    new Map([
      ["a", "1.5"],
      ["b", "{"],
      ["group", new Map([["x", "many"]])],
    ]),
  );
  assert.deepEqual(
    faults.map(({ path }) => path),
    ["a", "b", "c", "group.x"],
  );
  assert.equal(faults[0].message, "not a whole number");
});

test("a property with the name of a JavaScript internal is a property", () => {
  const schema = JSON.parse(
    '{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{"type":"string"}}}',
  );
  const { value } = collected(
    fields(schema, {}),
    new Map([
      ["__proto__", "p"],
      ["constructor", "c"],
    ]),
  );
  assert.equal(JSON.stringify(value), '{"__proto__":"p","constructor":"c"}');
  assert.equal(fields(schema, {})[1].initial, undefined);
});
