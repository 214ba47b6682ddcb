// @ts-check
// From a JSON schema to the fields of a form, and from what was entered to a value. What no field can express is JSON.

/**
 * @typedef {{value: unknown, title: string}} Option
 * @typedef {object} Field
 * @property {string} name
 * @property {string} title
 * @property {string} description
 * @property {string} hint the bounds of the value, in words
 * @property {boolean} isRequired
 * @property {unknown} initial undefined, or the value that the form starts with
 * @property {"text" | "number" | "integer" | "boolean" | "choice" | "choices" | "group" | "json"} control
 * @property {Option[]} options of a choice
 * @property {Field[]} fields of a group
 *
 * @typedef {string | string[] | Entries} Entry what was entered: a text, the indexes of options, or those of a group
 * @typedef {Map<string, Entry>} Entries
 * @typedef {{value?: unknown, faults: {path: string, message: string}[]}} Collected without a value if nothing was entered
 */

const DEPTH = 1;
const REFERENCES = 20;

/**
 * @param {any} schema of an object
 * @param {any} [initial] values that replace the defaults
 * @returns {Field[] | null} null if the schema has no properties to ask for, or allows more than they say
 */
export function fields(schema, initial) {
  return group(resolved(schema, schema), schema, initial, 0);
}

/**
 * @param {any} schema
 * @param {any} root
 * @param {any} initial
 * @param {number} depth
 * @returns {Field[] | null}
 */
function group(schema, root, initial, depth) {
  const properties = schema?.properties;
  if (!properties || typeof properties !== "object" || schema.oneOf || schema.anyOf || schema.allOf) return null;
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  return Object.entries(properties).map(([name, property]) =>
    field(name, resolved(property, root), root, required.has(name), own(initial, name), depth),
  );
}

/**
 * @param {string} name
 * @param {any} schema
 * @param {any} root
 * @param {boolean} isRequired
 * @param {unknown} initial
 * @param {number} depth
 * @returns {Field}
 */
function field(name, schema, root, isRequired, initial, depth) {
  /** @type {Field} */
  const made = {
    name,
    title: text(schema.title) || name,
    description: text(schema.description),
    hint: hint(schema),
    isRequired,
    initial: initial !== undefined ? initial : (schema.default ?? schema.const),
    control: "json",
    options: [],
    fields: [],
  };
  const type = schema.type;
  const choices = options(schema);
  const items = schema.items && options(resolved(schema.items, root));
  if (choices) Object.assign(made, { control: "choice", options: choices });
  else if (type === "array" && items) Object.assign(made, { control: "choices", options: items });
  else if (type === "string") made.control = "text";
  else if (type === "number" || type === "integer" || type === "boolean") made.control = type;
  else if (type === "object" && depth < DEPTH) {
    const inner = group(schema, root, made.initial, depth + 1);
    if (inner && inner.length > 0) Object.assign(made, { control: "group", fields: inner });
  }
  const isBetween = made.control === "choice" && !made.options.some((option) => same(option.value, made.initial));
  if (made.control === "text" && made.initial !== undefined && typeof made.initial !== "string") made.control = "json";
  if (isBetween) made.initial = undefined;
  return made;
}

/**
 * The schema behind local references, and behind "or null", which an absent value expresses.
 * @param {any} schema
 * @param {any} root
 */
function resolved(schema, root) {
  let current = schema;
  for (let step = 0; step < REFERENCES; step++) {
    if (!current || typeof current !== "object") return {};
    const { $ref, ...rest } = current;
    const variants = alternatives(current);
    if (typeof $ref === "string" && $ref.startsWith("#/")) {
      const found = $ref
        .slice(2)
        .split("/")
        .reduce((/** @type {any} */ part, step) => own(part, unescaped(step)), root);
      current = { ...found, ...rest };
    } else if (variants.length === 1 && !Object.hasOwn(variants[0], "const")) {
      const { anyOf: _any, oneOf: _one, ...outer } = current;
      current = { ...variants[0], ...outer };
    } else if (Array.isArray(current.type)) {
      const types = current.type.filter((/** @type {string} */ type) => type !== "null");
      return { ...current, type: types.length === 1 ? types[0] : undefined };
    } else return current;
  }
  return {};
}

/**
 * @param {any} schema
 * @returns {any[]} what it may be, but null
 */
function alternatives(schema) {
  const variants = schema.anyOf ?? schema.oneOf;
  return Array.isArray(variants)
    ? variants.filter((variant) => variant && typeof variant === "object" && variant.type !== "null")
    : [];
}

/** @param {string} step of a JSON pointer */
const unescaped = (step) => step.replaceAll("~1", "/").replaceAll("~0", "~");

/**
 * @param {any} schema
 * @returns {Option[] | null}
 */
function options(schema) {
  if (Array.isArray(schema.enum)) {
    const names = Array.isArray(schema.enumNames) ? schema.enumNames : [];
    return schema.enum.map((/** @type {unknown} */ value, /** @type {number} */ index) => ({
      value,
      title: text(names[index]) || (typeof value === "string" ? value : JSON.stringify(value)),
    }));
  }
  const variants = alternatives(schema);
  if (variants.length === 0 || !variants.every((variant) => Object.hasOwn(variant, "const"))) return null;
  return variants.map((variant) => ({ value: variant.const, title: text(variant.title) || String(variant.const) }));
}

/** @param {any} schema */
function hint(schema) {
  const { minimum, maximum, minLength, maxLength, minItems, maxItems, pattern, format } = schema;
  return [
    text(format),
    bounds(minimum, maximum, ""),
    bounds(minLength, maxLength, " characters"),
    bounds(minItems, maxItems, " items"),
    pattern && `matches ${pattern}`,
  ]
    .filter(Boolean)
    .join(", ");
}

/**
 * @param {unknown} least
 * @param {unknown} most
 * @param {string} unit
 */
function bounds(least, most, unit) {
  if (typeof least === "number" && typeof most === "number") return `${least} to ${most}${unit}`;
  if (typeof least === "number") return `at least ${least}${unit}`;
  return typeof most === "number" ? `at most ${most}${unit}` : "";
}

/**
 * @param {Field[]} fields
 * @param {Entries} entries
 * @param {string} [path]
 * @returns {Collected & {value: Record<string, unknown>}}
 */
export function collected(fields, entries, path = "") {
  /** @type {[string, unknown][]} */
  const values = [];
  /** @type {Collected["faults"]} */
  const faults = [];
  for (const field of fields) {
    const part = parsed(field, entries.get(field.name) ?? "", path ? `${path}.${field.name}` : field.name);
    faults.push(...part.faults);
    if ("value" in part) values.push([field.name, part.value]);
  }
  return { value: Object.fromEntries(values), faults };
}

/**
 * @param {Field} field
 * @param {Entry} entry
 * @param {string} path
 * @returns {Collected}
 */
function parsed(field, entry, path) {
  if (entry instanceof Map) {
    const inner = collected(field.fields, entry, path);
    return field.isRequired || Object.keys(inner.value).length > 0 ? inner : { faults: inner.faults };
  }
  if (Array.isArray(entry)) {
    const value = entry.map((index) => field.options[Number(index)]?.value);
    return field.isRequired || value.length > 0 ? { value, faults: [] } : { faults: [] };
  }
  if (entry === "") {
    if (!field.isRequired) return { faults: [] };
    return field.control === "text" ? { value: "", faults: [] } : { faults: [{ path, message: "required" }] };
  }
  switch (field.control) {
    case "number":
    case "integer": {
      const value = Number(entry);
      const isNumber = Number.isFinite(value) && (field.control === "number" || Number.isInteger(value));
      if (isNumber && entry.trim() !== "") return { value, faults: [] };
      return { faults: [{ path, message: field.control === "number" ? "not a number" : "not a whole number" }] };
    }
    case "boolean":
      return { value: entry === "true", faults: [] };
    case "choice":
      return { value: field.options[Number(entry)]?.value, faults: [] };
    case "json":
      try {
        return { value: JSON.parse(entry), faults: [] };
      } catch (error) {
        return { faults: [{ path, message: `not JSON: ${error instanceof Error ? error.message : error}` }] };
      }
    default:
      return { value: entry, faults: [] };
  }
}

/**
 * @param {unknown} a
 * @param {unknown} b
 */
export const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/**
 * @param {any} object
 * @param {string} name
 */
const own = (object, name) =>
  object && typeof object === "object" && Object.hasOwn(object, name) ? object[name] : undefined;

/** @param {unknown} value */
const text = (value) => (typeof value === "string" ? value : "");
