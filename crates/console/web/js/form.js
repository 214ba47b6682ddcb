// @ts-check
// The fields of a schema as a form.

import { element, fill, foreign, set } from "./dom.js";
import { collected, same } from "./schema.js";
import { json } from "./text.js";

/**
 * @typedef {import("./schema.js").Field} Field
 * @typedef {import("./schema.js").Entry} Entry
 * @typedef {{root: HTMLElement, read: () => Entry}} Control
 */

let lastId = 0;

export class FieldForm {
  #fields;
  /** @type {Map<string, Control>} */
  #controls;
  /** Where the fault of a field is shown, and what it is about.
   * @type {Map<string, {place: HTMLElement, input: HTMLElement}>} */
  #faults = new Map();

  /** @param {Field[]} fields */
  constructor(fields) {
    this.#fields = fields;
    this.#controls = this.#group(fields, "");
    this.root = element(
      "div",
      { class: "fields" },
      [...this.#controls.values()].map((control) => control.root),
    );
  }

  /** @returns {Record<string, unknown> | null} null if something cannot be sent; the form shows what */
  read() {
    const { value, faults } = collected(this.#fields, entries(this.#controls));
    for (const { place, input } of this.#faults.values()) {
      fill(place);
      set(input, { "aria-invalid": null });
    }
    for (const { path, message } of faults) {
      const fault = this.#faults.get(path);
      if (!fault) continue;
      fill(fault.place, message);
      set(fault.input, { "aria-invalid": "true" });
    }
    if (faults.length === 0) return value;
    this.#faults.get(faults[0].path)?.input.focus();
    return null;
  }

  /**
   * @param {Field[]} fields
   * @param {string} path
   * @returns {Map<string, Control>}
   */
  #group(fields, path) {
    return new Map(fields.map((field) => [field.name, this.#control(field, path ? `${path}.${field.name}` : field.name)]));
  }

  /**
   * @param {Field} field
   * @param {string} path
   * @returns {Control}
   */
  #control(field, path) {
    const id = `field-${++lastId}`;
    const place = element("span", { class: "fault", id: `${id}-fault` });
    const about = element("span", { class: "about", id: `${id}-about` }, field.description && foreign(field.description));
    if (field.hint) about.append(element("span", { class: "hint" }, foreign(field.hint)));
    const title = [foreign(field.title), field.isRequired && element("span", { class: "required" }, " required")];
    const described = { "aria-describedby": `${id}-about ${id}-fault` };

    if (field.control === "group") {
      const controls = this.#group(field.fields, path);
      const root = element(
        "fieldset",
        null,
        element("legend", null, title),
        about,
        [...controls.values()].map(({ root }) => root),
      );
      return { root, read: () => entries(controls) };
    }
    if (field.control === "choices") {
      const initial = Array.isArray(field.initial) ? field.initial : [];
      const boxes = field.options.map((option, index) => {
        const isChecked = initial.some((value) => same(value, option.value));
        return element("input", { type: "checkbox", value: index, checked: isChecked });
      });
      const labels = boxes.map((box, index) => element("label", { class: "box" }, box, foreign(field.options[index].title)));
      const root = element("fieldset", null, element("legend", null, title), about, labels);
      return { root, read: () => boxes.filter((box) => box.checked).map((box) => box.value) };
    }
    const input = this.#input(field, id, described);
    this.#faults.set(path, { place, input });
    const root = element("div", { class: "field" }, element("label", { for: id }, title), about, input, place);
    return { root, read: () => input.value };
  }

  /**
   * @param {Field} field
   * @param {string} id
   * @param {import("./dom.js").Attributes} described
   */
  #input(field, id, described) {
    const shared = { id, ...described, "aria-required": field.isRequired ? "true" : null };
    if (field.control === "boolean" || field.control === "choice") {
      const choices =
        field.control === "boolean"
          ? ["true", "false"].map((value) => ({ value, title: value, isInitial: String(field.initial) === value }))
          : field.options.map(({ value, title }, index) => ({
              value: String(index),
              title,
              isInitial: same(value, field.initial),
            }));
      return element(
        "select",
        shared,
        element("option", { value: "" }, field.isRequired ? "choose" : "not set"),
        choices.map(({ value, title, isInitial }) =>
          element("option", { value, selected: isInitial }, foreign(title).textContent),
        ),
      );
    }
    if (field.control === "number" || field.control === "integer") {
      const input = element("input", {
        ...shared,
        type: "text",
        inputmode: field.control === "number" ? "decimal" : "numeric",
      });
      input.value = field.initial === undefined ? "" : String(field.initial);
      return input;
    }
    const isJson = field.control === "json";
    const area = element("textarea", {
      ...shared,
      rows: isJson ? 3 : 1,
      class: isJson ? "code" : null,
      spellcheck: "false",
    });
    if (isJson) set(area, { placeholder: "JSON" });
    area.value = field.initial === undefined ? "" : isJson ? json(field.initial) : String(field.initial);
    return area;
  }
}

/**
 * @param {Map<string, Control>} controls
 * @returns {Map<string, Entry>}
 */
const entries = (controls) => new Map([...controls].map(([name, control]) => [name, control.read()]));
