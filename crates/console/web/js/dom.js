// @ts-check
// The only place that creates nodes. Every text becomes a text node: no name, description or result is ever markup.

import { size } from "./format.js";
import { pieces, SHOWN, visible } from "./text.js";

/**
 * @typedef {Node | string | number | null | undefined | false | Child[]} Child
 * @typedef {Record<string, string | number | boolean | null | undefined>} Attributes
 */

const LINKS = /^(#|https?:\/\/|blob:)/;

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes | null} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function element(tag, attributes, ...children) {
  const created = document.createElement(tag);
  set(created, attributes ?? {});
  append(created, children);
  return created;
}

/**
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} attributes
 * @param {...Node} children
 * @returns {SVGElementTagNameMap[Tag]}
 */
export function drawing(tag, attributes, ...children) {
  const created = document.createElementNS("http://www.w3.org/2000/svg", tag);
  set(created, attributes);
  created.append(...children);
  return created;
}

/**
 * @param {Child} label
 * @param {() => void} press
 * @param {Attributes} [attributes]
 */
export function button(label, press, attributes) {
  const created = element("button", { type: "button", ...attributes }, label);
  created.addEventListener("click", press);
  return created;
}

/**
 * Links to other sites. One whose address is not that of a web page is left out.
 * @param {import("./api.js").Link[]} links
 */
export function outside(links) {
  const anchors = links.map(({ title, url }) =>
    element("a", { href: url, rel: "noreferrer", target: "_blank" }, foreign(title)),
  );
  return anchors.filter(({ href }) => href).flatMap((anchor) => [" ", anchor]);
}

/**
 * @param {Element} target
 * @param {Attributes} attributes
 */
export function set(target, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    const refused = (name === "href" || name === "src") && !LINKS.test(String(value));
    if (value == null || value === false || refused) target.removeAttribute(name);
    else target.setAttribute(name, value === true ? "" : String(value));
  }
}

/**
 * @param {ParentNode} parent
 * @param {...Child} children
 */
export function fill(parent, ...children) {
  parent.replaceChildren();
  append(parent, children);
}

/**
 * @param {ParentNode} parent
 * @param {Child[]} children
 */
function append(parent, children) {
  for (const child of children) {
    if (child == null || child === false) continue;
    if (Array.isArray(child)) append(parent, child);
    else parent.append(child instanceof Node ? child : String(child));
  }
}

/**
 * A text that others wrote: isolated, so that its direction changes nothing around it. An object's status may lack any field.
 * @param {string | null | undefined} value
 */
export function foreign(value) {
  const text = String(value ?? "");
  return element("bdi", null, visible(text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text));
}

/**
 * A long text of others, with line breaks. The rest of a very long one appears on request.
 * @param {string} text
 */
export function block(text) {
  const pre = element("pre", { tabindex: 0, dir: "auto" }, visible(text.slice(0, SHOWN)));
  if (text.length <= SHOWN) return pre;
  const more = button(`Show all ${size(text.length)}`, () => {
    fill(
      pre,
      pieces(text).map((piece) => element("span", { class: "piece" }, visible(piece))),
    );
    more.remove();
  });
  return element("div", { class: "truncated" }, pre, more);
}
