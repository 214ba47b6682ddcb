// @ts-check
// The token of a local console, or the session at one that is reached at an address of this machine. `skep run` prints its token as part
// of the address, as a fragment, which browsers never send. There is no cookie, because all ports of a host share cookies.

const PLACE = "skep.token";
let token = stored();
/** Tokens that the console did not accept: they are of an earlier run on the same port.
 * @type {Set<string>} */
const refused = new Set();
/** Other tabs. A link that opens in a new one does not take the storage along.
 * @type {BroadcastChannel | null} */
let tabs = null;

/**
 * Takes the token out of the address, so that it is neither shown nor part of the history.
 * @returns {boolean} whether there was one
 */
export function takeToken() {
  const found = /^#token=(.+)$/.exec(location.hash);
  if (!found) return false;
  history.replaceState(null, "", "#/");
  keep(decodeURIComponent(found[1]));
  tabs?.postMessage({ token });
  return true;
}

/**
 * Shares the token with other tabs.
 * @param {() => void} received is called when another tab had one and this did not
 */
export function shareToken(received) {
  const channel = new BroadcastChannel(PLACE);
  tabs = channel;
  channel.addEventListener("message", ({ data }) => {
    if (data.isWanted && token) channel.postMessage({ token });
    if (!data.token || token || refused.has(data.token)) return;
    keep(data.token);
    received();
  });
}

/** Forgets a token that the console did not accept, and requests another one of the other tabs. */
export function replaceToken() {
  if (token) refused.add(token);
  keep("");
  tabs?.postMessage({ isWanted: true });
}

/** @param {string} value */
export function keep(value) {
  token = value;
  try {
    sessionStorage.setItem(PLACE, token);
  } catch {
    // Without storage the token lasts until the page is loaded again.
  }
}

/** @returns {Record<string, string>} headers of every request to the console */
export function authorization() {
  return token ? { Authorization: `Bearer ${token}` } : {};
}

function stored() {
  try {
    return sessionStorage.getItem(PLACE) ?? "";
  } catch {
    return "";
  }
}
