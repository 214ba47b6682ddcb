// @ts-check
// Pages are named by the fragment of the address: #/PAGE/KIND/NAMESPACE/NAME/TOOL?QUERY.

/** @typedef {{page: string, parts: string[], query: URLSearchParams}} Route */

/**
 * @param {string} fragment
 * @returns {Route}
 */
export function route(fragment) {
  const [path, query = ""] = fragment.replace(/^#\/?/, "").split("?", 2);
  try {
    const [page, ...parts] = path.split("/").map(decodeURIComponent);
    return { page, parts, query: new URLSearchParams(query) };
  } catch {
    return { page: "unknown", parts: [], query: new URLSearchParams() };
  }
}

/**
 * @param {string} page
 * @param {string[]} [parts]
 */
export function link(page, parts = []) {
  return `#/${[page, ...parts].map(encodeURIComponent).join("/")}`;
}

/**
 * @param {import("./api.js").Ref} ref
 * @param {string} [page]
 */
export function objectLink(ref, page = "object") {
  return link(page, [ref.kind, ref.namespace, ref.name]);
}

/**
 * Keeps the state of a page in its address, so that it can be sent to others, without a step of the history.
 * @param {Record<string, string>} state
 */
export function remember(state) {
  const [path] = location.hash.split("?");
  const query = new URLSearchParams(Object.entries(state).filter(([, value]) => value)).toString();
  history.replaceState(null, "", (path || "#/") + (query && `?${query}`));
}
