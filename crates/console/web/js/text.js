// @ts-check
// Texts of servers are hostile until proven otherwise: what a reader cannot see is shown.

// Control characters but tab and line feed; separators of lines; and all that Unicode lets a font leave out: what reorders a text, as in
// "\u202Egnp.exe", what joins words, variation selectors and tags, which are invisible to people and legible to models. An emoji keeps the
// one selector or joiner that gives it its shape.
const INVISIBLE =
  /(?!(?<=\p{Emoji})\ufe0f|(?<=[\p{Emoji}\ufe0f])\u200d(?=\p{Extended_Pictographic}))[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\ufff9-\ufffb\p{Default_Ignorable_Code_Point}]/gu;

/** How many characters of a text are shown before someone wants all. */
export const SHOWN = 20_000;

/**
 * The text with a symbol for each character that has no shape of its own.
 * @param {string} text
 */
export function visible(text) {
  return text.replaceAll("\r\n", "\n").replace(INVISIBLE, symbol);
}

/** @param {string} character */
function symbol(character) {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/**
 * The text in pieces of a bounded size, which end at line breaks where possible. A browser needs minutes for one line of megabytes.
 * @param {string} text
 */
export function pieces(text) {
  const found = [];
  for (let start = 0; start < text.length;) {
    const end = Math.min(start + SHOWN, text.length);
    const lineBreak = text.lastIndexOf("\n", end - 1) + 1;
    const next = end < text.length && lineBreak > start ? lineBreak : end;
    found.push(text.slice(start, next));
    start = next;
  }
  return found;
}

/**
 * Indented JSON, for reading.
 * @param {unknown} value
 */
export function json(value) {
  return JSON.stringify(value, null, 2) ?? "";
}

/**
 * JSON in which equal values have equal texts.
 * @param {unknown} value
 * @returns {string}
 */
export function canonical(value) {
  return JSON.stringify(value, (_, part) =>
    part && typeof part === "object" && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}
