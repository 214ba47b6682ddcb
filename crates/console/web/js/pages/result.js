// @ts-check
// The content of a tool's result. Nothing of it is loaded from elsewhere, and nothing runs.

import { block, element, fill, foreign } from "../dom.js";
import { json } from "../text.js";

const IMAGES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/**
 * @param {any} result
 * @returns {import("../dom.js").Child[]}
 */
export function content(result) {
  const items = Array.isArray(result.content) ? result.content : [];
  return [
    items.map(item),
    result.structuredContent !== undefined && [
      element("h3", null, "Structured content"),
      block(json(result.structuredContent)),
    ],
    items.length === 0 && result.structuredContent === undefined && element("p", { class: "quiet" }, "The result is empty."),
  ];
}

/** @param {any} part */
function item(part) {
  const type = String(part?.mimeType ?? part?.resource?.mimeType ?? "");
  switch (part?.type) {
    case "text":
      return block(String(part.text ?? ""));
    case "image":
      return IMAGES.includes(type) ? image(part.data, type) : file(part.data, type, "image");
    case "audio":
      return file(part.data, type, "audio");
    case "resource_link":
      return element(
        "p",
        null,
        "Resource ",
        element("code", null, foreign(String(part.uri ?? ""))),
        part.name && [" ", foreign(String(part.name))],
      );
    case "resource":
      return element(
        "figure",
        null,
        element("figcaption", null, "Resource ", element("code", null, foreign(String(part.resource?.uri ?? "")))),
        part.resource?.blob !== undefined
          ? file(part.resource.blob, type, "resource")
          : block(String(part.resource?.text ?? "")),
      );
    default:
      return block(json(part));
  }
}

/**
 * @param {string} data in base64
 * @param {string} type one that cannot contain script
 */
function image(data, type) {
  const bytes = decoded(data);
  if (!bytes) return file(data, type, "image");
  const shown = element("img", { alt: "Image of the result", src: URL.createObjectURL(new Blob([bytes], { type })) });
  shown.addEventListener("load", () => URL.revokeObjectURL(shown.src));
  shown.addEventListener("error", () =>
    shown.replaceWith(element("p", { class: "problem" }, "The image cannot be decoded.")),
  );
  return element("figure", null, shown, file(data, type, "image"));
}

/**
 * @param {string} data in base64
 * @param {string} type
 * @param {string} name
 */
function file(data, type, name) {
  const bytes = decoded(data);
  if (!bytes) return element("p", { class: "problem" }, `The ${name} is not valid base64.`);
  const label = ["Save the ", name, " (", foreign(type || "unknown type"), `, ${bytes.length.toLocaleString("en")} bytes)`];
  const press = element("button", { type: "button" });
  fill(press, label);
  press.addEventListener("click", () => {
    // As octets, so that the browser saves it and never renders it in the console's origin.
    const url = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
    element("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  });
  return press;
}

/** @param {unknown} data */
function decoded(data) {
  try {
    return Uint8Array.from(atob(String(data)), (character) => character.charCodeAt(0));
  } catch {
    return null;
  }
}
