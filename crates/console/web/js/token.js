// @ts-check
// The token of a local console, or the session at one that is reached at an address of this machine. `skep run` prints its token as part
// of the address, as a fragment, which browsers never send. There is no cookie, because all ports of a host share cookies.

const PLACE = "skep.token";
/** What the login is known by that this tab has begun. */
const LOGIN = "skep.login";
/** What the tokens of sessions begin with. */
const SESSION = "skep-session-";
let token = stored(PLACE);
/** What an address has offered, until it is known whether to take it.
 * @type {{token: string, state: string} | null} */
let offered = null;
/** Tokens that the console did not accept: they are of an earlier run on the same port.
 * @type {Set<string>} */
const refused = new Set();
/** Other tabs. A link that opens in a new one does not take the storage along.
 * @type {BroadcastChannel | null} */
let tabs = null;

/** Takes a token out of the address, so that it is neither shown nor part of the history. Who wrote the address is not known yet. */
export function takeOffer() {
  const found = /^#token=([^&]+)(?:&state=(.+))?$/.exec(location.hash);
  if (!found) return;
  history.replaceState(null, "", "#/");
  offered = { token: decodeURIComponent(found[1]), state: decodeURIComponent(found[2] ?? "") };
}

/**
 * Uses a token that the address has offered, at a console that has not accepted the one of this tab. The address of a local console is
 * known to nobody but its user. A cluster's anyone may link to, with a session of their own: there, a session must come from the login
 * that this tab has begun.
 * @param {string} mode
 * @returns {boolean} whether there is one to use
 */
export function acceptOffer(mode) {
  const offer = offered;
  offered = null;
  if (!offer) return false;
  if (mode === "cluster") {
    const begun = stored(LOGIN);
    store(LOGIN, "");
    if (!begun || offer.state !== begun || !offer.token.startsWith(SESSION)) return false;
  }
  keep(offer.token);
  tabs?.postMessage({ token });
  return true;
}

/** A token is not needed: this tab is signed in. */
export function refuseOffer() {
  offered = null;
  store(LOGIN, "");
}

/**
 * Remembers which login this tab has begun.
 * @param {string} location where it goes on
 */
export function keepLogin(location) {
  store(LOGIN, new URL(location).searchParams.get("state") ?? "");
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
  store(PLACE, token);
}

/** @returns {Record<string, string>} headers of every request to the console */
export function authorization() {
  return token ? { Authorization: `Bearer ${token}` } : {};
}

/** @param {string} place */
function stored(place) {
  try {
    return sessionStorage.getItem(place) ?? "";
  } catch {
    return "";
  }
}

/**
 * @param {string} place
 * @param {string} value
 */
function store(place, value) {
  try {
    sessionStorage.setItem(place, value);
  } catch {
    // Without storage the token lasts until the page is loaded again.
  }
}
