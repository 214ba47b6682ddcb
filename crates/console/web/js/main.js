// @ts-check
// Starts the page: signs in, then shows the page that the address names.

import * as api from "./api.js";
import { Announcer } from "./announcer.js";
import { startClock } from "./clock.js";
import { button, element, fill, foreign, outside, set } from "./dom.js";
import { Live } from "./live.js";
import { calls } from "./pages/calls.js";
import { overview } from "./pages/overview.js";
import { signInPage } from "./pages/sign-in.js";
import { returnToPlace, takeFailure } from "./place.js";
import { route } from "./router.js";
import { Store } from "./store.js";
import { acceptOffer, refuseOffer, replaceToken, shareToken, takeOffer } from "./token.js";

/**
 * @typedef {{store: Store, live: Live, expire: (error: unknown) => void}} Context
 * @typedef {import("./router.js").Route} Route
 * @typedef {object} View
 * @property {string} title
 * @property {HTMLElement} root
 * @property {() => void} leave
 * @property {(route: Route) => boolean} [update] shows another address of the same page, and returns whether it can
 * @typedef {(context: Context, route: Route) => View} Page
 */

/** Pages that are not the first to be looked at are loaded when they are.
 * @type {Record<string, () => Page | Promise<Page>>} */
const PAGES = {
  "": () => overview,
  calls: () => calls,
  object: async () => (await import("./pages/object.js").catch(api.unreachable)).object,
  sessions: async () => (await import("./pages/sessions.js").catch(api.unreachable)).sessions,
  try: async () => (await import("./pages/try.js").catch(api.unreachable)).attempt,
};

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const account = /** @type {HTMLElement} */ (document.getElementById("account"));
const links = /** @type {HTMLElement} */ (document.getElementById("links"));
const connection = /** @type {HTMLElement} */ (document.getElementById("connection"));
const announcements = /** @type {HTMLElement} */ (document.getElementById("announcements"));

const store = new Store((run) => requestAnimationFrame(run));
const live = new Live(store, showConnection, expire);
/** @type {View | null} */
let view = null;
let current = "";
let isSignedIn = false;

async function navigate() {
  if (location.hash && !location.hash.startsWith("#/")) return;
  const next = route(location.hash);
  for (const anchor of document.querySelectorAll("header nav a")) {
    set(anchor, {
      "aria-current": route(/** @type {HTMLAnchorElement} */ (anchor).hash).page === next.page ? "page" : null,
    });
  }
  if (view && current === next.page && view.update?.(next)) return;
  view?.leave();
  view = null;
  const address = location.hash;
  const page = Object.hasOwn(PAGES, next.page) ? await PAGES[next.page]() : unknown;
  // Another address may have been opened while the page was loaded.
  if (location.hash !== address) return;
  view = page({ store, live, expire }, next);
  show(view.title, view.root, current !== next.page || main.contains(document.activeElement));
  current = next.page;
}

/** @type {Page} */
function unknown() {
  const root = element(
    "div",
    null,
    element("h1", { tabindex: -1 }, "There is no such page"),
    element("p", null, element("a", { href: "#/" }, "All servers")),
  );
  return { title: "Not found", root, leave() {} };
}

/**
 * @param {string} title
 * @param {HTMLElement} root
 * @param {boolean} shouldFocus
 */
function show(title, root, shouldFocus) {
  document.title = `${title} · skep`;
  fill(main, root);
  if (shouldFocus) root.querySelector("h1")?.focus({ preventScroll: true });
  scrollTo(0, 0);
}

/**
 * @param {import("./live.js").State} state
 * @param {string} [reason]
 */
function showConnection(state, reason) {
  set(connection, { class: `phase ${state === "live" ? "good" : "waiting"}` });
  fill(connection, { live: "live", connecting: "connecting…", paused: "paused" }[state], reason && [" ", foreign(reason)]);
}

/** @param {unknown} error */
function expire(error) {
  live.close();
  view?.leave();
  view = null;
  isSignedIn = false;
  fill(account);
  fill(connection);
  replaceToken();
  const { mode, provider } = error instanceof api.ApiError ? error : { mode: "", provider: "" };
  show("Sign in", signInPage(mode, provider, takeFailure(), start), true);
}

/** Signs in with what this tab has, or else with what its address has offered. */
async function signedIn() {
  takeOffer();
  try {
    const session = await api.session();
    refuseOffer();
    return session;
  } catch (error) {
    if (!(error instanceof api.ApiError && error.status === 401 && acceptOffer(error.mode))) throw error;
    return api.session();
  }
}

async function start() {
  try {
    const session = await signedIn();
    fill(links, outside(session.links));
    fill(account, session.user && foreign(session.user), session.mode === "cluster" && button("Sign out", leave));
    isSignedIn = true;
    returnToPlace();
    await navigate();
  } catch (error) {
    fail(error);
  }
}

/** @param {unknown} error */
function fail(error) {
  if (error instanceof api.ApiError && error.status === 401) return expire(error);
  const message = error instanceof Error ? error.message : String(error);
  const heading = element("h1", { tabindex: -1 }, "The console does not respond");
  show("Unavailable", element("div", null, heading, element("p", null, foreign(message)), button("Try again", start)), true);
  // See reload.js.
  if (error instanceof api.Unreachable) dispatchEvent(new Event("unreachable"));
}

async function leave() {
  await api.signOut();
  location.reload();
}

document.addEventListener("keydown", (event) => {
  const isTyping = event.target instanceof Element && event.target.matches("input, textarea, select");
  if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const filter = document.getElementById("filter");
  if (!filter) return;
  event.preventDefault();
  filter.focus();
});
document.getElementById("skip")?.addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
window.addEventListener("hashchange", () => {
  if (location.hash.startsWith("#token=")) start();
  else if (isSignedIn) navigate().catch(fail);
});
window.addEventListener("pagehide", () => view?.leave());
window.addEventListener("pageshow", (event) => event.persisted && location.reload());

new Announcer(announcements, store);
shareToken(start);
startClock();
start();
