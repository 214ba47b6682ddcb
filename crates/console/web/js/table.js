// @ts-check
// A table whose rows are kept and patched by key, so that a thousand of them stay fast and keep focus and selection.

import { element, fill, set } from "./dom.js";
import { comparator } from "./filter.js";
import { NONE } from "./format.js";

/**
 * @template T
 * @typedef {object} Column
 * @property {string} id
 * @property {string} title
 * @property {(item: T) => string} text changes whenever the cell must be filled again
 * @property {(item: T) => import("./dom.js").Child} [content] the cell, if it is more than its text
 * @property {(item: T) => string | number | null} [order] makes the column sortable
 * @property {boolean} [isFigure]
 */

/**
 * @template T
 * @typedef {{row: HTMLTableRowElement, item: T | null, texts: string[]}} Row
 */

const SPARE = 2000;

/** @template T */
export class Table {
  /** @type {Map<string, Row<T>>} */
  #rows = new Map();
  /** Rows that a filter hides: a wider one shows them again.
   * @type {Map<string, Row<T>>} */
  #spare = new Map();
  #columns;
  #key;
  #body = element("tbody", { role: "rowgroup" });
  /** @type {HTMLTableCellElement[]} */
  #heads;

  /**
   * @param {string} caption
   * @param {Column<T>[]} columns
   * @param {(item: T) => string} key
   * @param {{sort: string, changed: (sort: string) => void}} [sorting] a column's id, after a minus if descending
   */
  constructor(caption, columns, key, sorting) {
    this.#columns = columns;
    this.#key = key;
    this.sort = sorting?.sort ?? "";
    this.#heads = columns.map((column) => {
      const head = element("th", {
        scope: "col",
        role: "columnheader",
        class: `${column.isFigure ? "figure" : ""} of-${column.id}`,
      });
      if (!column.order || !sorting) return (fill(head, column.title), head);
      const press = element("button", { type: "button" }, column.title);
      press.addEventListener("click", () => {
        const [first, second] = directions(column);
        this.#sortBy(this.sort === first ? second : first, sorting.changed);
      });
      return (fill(head, press), head);
    });
    /** The heads for narrow screens, which do not show them. */
    this.choice = element(
      "select",
      { class: "narrow", "aria-label": "Order" },
      columns
        .filter(({ order }) => order)
        .map((column) => element("option", { value: directions(column)[0] }, `By ${column.title}`)),
    );
    this.choice.addEventListener("input", () => sorting && this.#sortBy(this.choice.value, sorting.changed));
    this.#markSort();
    // The roles are those of a table. They are repeated because narrow screens show rows as cards, which drops them.
    this.root = element(
      "table",
      { role: "table" },
      element("caption", { class: "unseen" }, caption),
      element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, this.#heads)),
      this.#body,
    );
  }

  /** @param {T[]} items in their order, unless a column is sorted */
  show(items) {
    const sorted = this.#sorted(items);
    const keys = sorted.map(this.#key);
    const kept = new Set(keys);
    for (const [key, known] of this.#rows) {
      if (kept.has(key)) continue;
      known.row.remove();
      this.#rows.delete(key);
      this.#spare.set(key, known);
    }
    for (const key of this.#spare.keys()) if (this.#spare.size > SPARE) this.#spare.delete(key);
    let next = this.#body.firstChild;
    sorted.forEach((item, index) => {
      const { row } = this.#patch(keys[index], item);
      if (row === next) next = row.nextSibling;
      else this.#body.insertBefore(row, next);
    });
  }

  /** @param {T[]} items */
  #sorted(items) {
    const id = this.sort.replace("-", "");
    const column = this.#columns.find((column) => column.id === id);
    if (!column?.order) return items;
    const sorted = [...items].sort(comparator(column.order, this.sort.startsWith("-"), this.#key));
    // A row must not move from under a pointer because a figure changed.
    if (!column.isFigure || !this.#body.matches(":hover, :focus-within")) return sorted;
    const places = new Map([...this.#rows.keys()].map((key) => [key, this.#rows.get(key)?.row.sectionRowIndex ?? 0]));
    return sorted.sort((a, b) => (places.get(this.#key(a)) ?? Infinity) - (places.get(this.#key(b)) ?? Infinity) || 0);
  }

  /**
   * @param {string} key
   * @param {T} item
   */
  #patch(key, item) {
    let known = this.#rows.get(key) ?? this.#spare.get(key);
    if (!known) {
      const cells = this.#columns.map((column) =>
        element("td", {
          role: "cell",
          "data-title": column.title,
          class: `${column.isFigure ? "figure" : ""} of-${column.id}`,
        }),
      );
      known = { row: element("tr", { role: "row" }, cells), item: null, texts: [] };
    }
    this.#rows.set(key, known);
    this.#spare.delete(key);
    if (known.item === item) return known;
    known.item = item;
    const { row, texts } = known;
    this.#columns.forEach((column, index) => {
      const text = column.text(item);
      if (texts[index] === text) return;
      texts[index] = text;
      const cell = row.cells[index];
      if (column.content) fill(cell, column.content(item));
      else cell.textContent = text;
      cell.toggleAttribute("data-none", cell.textContent === NONE);
    });
    return known;
  }

  /**
   * @param {string} sort
   * @param {(sort: string) => void} changed
   */
  #sortBy(sort, changed) {
    this.sort = sort;
    this.#markSort();
    changed(sort);
  }

  #markSort() {
    this.choice.value = this.sort;
    this.#columns.forEach((column, index) => {
      const direction = this.sort === column.id ? "ascending" : this.sort === `-${column.id}` ? "descending" : null;
      set(this.#heads[index], { "aria-sort": direction });
    });
  }
}

/**
 * Figures are interesting from the top, names from the start of the alphabet.
 * @template T
 * @param {Column<T>} column
 */
const directions = ({ id, isFigure }) => (isFigure ? [`-${id}`, id] : [id, `-${id}`]);
