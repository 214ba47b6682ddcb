import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const WEB = fileURLToPath(new URL("../../../web", import.meta.url));
const read = (path) => readFileSync(`${WEB}${path}`, "utf8");

/** The module with all that it imports before it runs. */
function closure(path, found = new Set()) {
  if (found.has(path)) return found;
  found.add(path);
  for (const [, imported] of read(path).matchAll(/ from "(\.[^"]+)"/g))
    closure(new URL(imported, `file://${path}`).pathname, found);
  return found;
}

test("the first page preloads exactly the modules that it runs", () => {
  const preloaded = [...read("/index.html").matchAll(/modulepreload" href="([^"]+)"/g)].map(([, path]) => path);
  const needed = [...closure("/js/main.js")].filter((path) => path !== "/js/main.js");
  assert.deepEqual(preloaded, needed.sort());
});

test("the first page has less than 100,000 bytes", () => {
  const files = ["/index.html", "/style.css", "/icon.svg", ...closure("/js/main.js")];
  const bytes = files.reduce((sum, path) => sum + Buffer.byteLength(read(path)), 0);
  assert.ok(bytes < 100_000, `${bytes} bytes`);
});

test("no module writes markup, styles or code", () => {
  for (const name of readdirSync(`${WEB}/js`, { recursive: true }).filter((name) => name.endsWith(".js"))) {
    const found = /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|\.style\b|srcdoc/.exec(
      read(`/js/${name}`),
    );
    assert.equal(found, null, `${name}: ${found}`);
  }
});
