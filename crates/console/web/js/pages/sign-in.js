// @ts-check
// What a viewer sees who is not signed in.

import { signIn } from "../api.js";
import { element, fill, foreign } from "../dom.js";

/**
 * @param {string} mode local, cluster, or empty if the console does not report it
 * @param {() => void} signedIn
 */
export function signInPage(mode, signedIn) {
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
    mode !== "local" && form(signedIn),
  );
}

/** @param {() => void} signedIn */
function form(signedIn) {
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
    element("label", { for: "token" }, "Kubernetes token"),
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
