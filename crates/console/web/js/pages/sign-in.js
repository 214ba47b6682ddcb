// @ts-check
// What a viewer sees who is not signed in.

import { logIn, signIn } from "../api.js";
import { button, element, fill, foreign } from "../dom.js";
import { keepPlace } from "../place.js";
import { keepLogin } from "../token.js";

/** Why the browser comes back from the provider without a session. */
const FAILURES = {
  refused: "The provider has refused the login. Try again, or use another account.",
  unknown: "This browser has not begun that login, or more than ten minutes ago. Log in again.",
  provider: "The provider does not respond as it should. Try again later.",
  cluster: "You are logged in, but the cluster does not accept the token of the provider.",
};

/**
 * @param {string} mode local, cluster, or empty if the console does not report it
 * @param {string} provider the host where users can log in, or empty
 * @param {string} failure why a login failed, or empty
 * @param {() => void} signedIn
 */
export function signInPage(mode, provider, failure, signedIn) {
  const local = element(
    "p",
    null,
    "Open the address that ",
    element("code", null, "skep run"),
    " printed: it signs this browser in.",
  );
  return element(
    "div",
    { class: "sign-in" },
    element("h1", { tabindex: -1 }, "Sign in"),
    mode !== "cluster" && local,
    provider && loginButton(provider, failure),
    mode !== "local" && form(provider ? "Or a Kubernetes token" : "Kubernetes token", signedIn),
  );
}

/**
 * @param {string} provider
 * @param {string} failure
 */
function loginButton(provider, failure) {
  const text = Object.hasOwn(FAILURES, failure) ? FAILURES[/** @type {keyof typeof FAILURES} */ (failure)] : "";
  const fault = element("p", { class: "fault", id: "login-fault", role: "alert" }, text);
  const start = button(["Log in at ", foreign(provider)], async () => {
    fill(fault);
    try {
      const location_ = await logIn();
      keepPlace();
      keepLogin(location_);
      location.assign(location_);
    } catch (error) {
      fill(fault, foreign(error instanceof Error ? error.message : String(error)));
    }
  });
  start.classList.add("primary");
  return element("div", { class: "login" }, start, fault);
}

/**
 * @param {string} label
 * @param {() => void} signedIn
 */
function form(label, signedIn) {
  const token = element("input", {
    id: "token",
    type: "password",
    autocomplete: "off",
    "aria-describedby": "token-about token-fault",
  });
  const fault = element("p", { class: "fault", id: "token-fault", role: "alert" });
  const about = element(
    "p",
    { id: "token-about", class: "quiet" },
    "For example of ",
    element("code", null, "kubectl create token NAME"),
    ". The console shows what this token may read, and keeps it out of reach of scripts.",
  );
  const root = element(
    "form",
    null,
    element("label", { for: "token" }, label),
    about,
    token,
    fault,
    element("button", { type: "submit", class: "primary" }, "Sign in"),
  );
  root.addEventListener("submit", async (event) => {
    event.preventDefault();
    fill(fault);
    try {
      await signIn(token.value.trim());
      token.value = "";
      signedIn();
    } catch (error) {
      fill(fault, foreign(error instanceof Error ? error.message : String(error)));
    }
  });
  return root;
}
