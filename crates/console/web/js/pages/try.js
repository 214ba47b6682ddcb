// @ts-check
// Calls tools of a server, as the viewer.

import { Connection } from "../connection.js";
import { element, fill, foreign, set } from "../dom.js";
import { matcher } from "../filter.js";
import { link, objectLink } from "../router.js";
import { same } from "../schema.js";
import { CallPanel } from "./call-panel.js";
import { Elicitations } from "./elicitation.js";
import { Messages } from "./messages.js";

/** @typedef {import("../mcp.js").Tool} Tool */

/** @type {import("../main.js").Page} */
export function attempt({ live, expire }, { parts }) {
  const [kind = "", namespace = "", name = ""] = parts;
  const ref = { kind, namespace, name };
  let chosen = parts[3] ?? "";
  /** @type {Tool[]} */
  let tools = [];

  const messages = new Messages();
  const elicitations = new Elicitations();
  /** @type {CallPanel | null} */
  let panel = null;
  const place = element("div");
  /** @type {import("../mcp.js").Host} */
  const host = {
    record: (direction, message) => messages.record(direction, message),
    notified: (message) => {
      if (message.method === "notifications/tools/list_changed") connection.list().catch(() => {});
      panel?.notify(message);
    },
    elicit: (params, signal) => elicitations.show(params, signal),
  };
  const connection = new Connection(ref, host, (listed) => ((tools = listed), drawList(), drawTool()), expire);

  const filter = element("input", {
    type: "search",
    id: "filter",
    "aria-label": "Filter tools",
    placeholder: "Filter tools: press /",
    "aria-keyshortcuts": "/",
  });
  const list = element("ul", { class: "plain" });
  const drawList = () => {
    const matches = matcher(filter.value);
    const shown = tools.filter((tool) => matches([tool.name, tool.title ?? "", tool.description ?? ""]));
    fill(
      list,
      shown.map((tool) =>
        element(
          "li",
          null,
          element(
            "a",
            { href: link("try", [kind, namespace, name, tool.name]), "aria-current": tool.name === chosen ? "true" : null },
            foreign(tool.name),
          ),
        ),
      ),
      shown.length === 0 && tools.length > 0 && element("li", { class: "quiet" }, "No tool matches."),
    );
  };
  filter.addEventListener("input", drawList);

  const drawTool = () => {
    const tool = tools.find((tool) => tool.name === chosen);
    // The list may come again during a call.
    if (panel && panel.client === connection.client && same(panel.tool, tool)) return;
    panel?.cancel();
    panel = tool && connection.client ? new CallPanel(tool, connection.client, () => elicitations.close()) : null;
    const hint = chosen
      ? ["The server does not offer ", element("code", null, foreign(chosen)), " to you."]
      : "Choose a tool.";
    fill(place, panel?.root ?? (tools.length > 0 && element("p", { class: "quiet" }, hint)));
  };

  live.watch("", () => {});
  connection.open();
  const choice = element("nav", { "aria-label": "Tools", class: "choice" }, filter, list);
  const root = element(
    "div",
    null,
    element(
      "p",
      { class: "quiet" },
      element("a", { href: "#/" }, "Servers"),
      " / ",
      element("a", { href: objectLink(ref) }, foreign(name)),
    ),
    element("h1", { tabindex: -1 }, "Try ", foreign(name)),
    connection.root,
    element("div", { class: "try" }, choice, element("div", null, place, elicitations.root, messages.root)),
  );
  return {
    title: `Try ${name}`,
    root,
    update(next) {
      if (next.parts.slice(0, 3).join("/") !== parts.slice(0, 3).join("/")) return false;
      chosen = next.parts[3] ?? "";
      for (const anchor of list.querySelectorAll("a")) {
        set(anchor, { "aria-current": anchor.hash === location.hash ? "true" : null });
      }
      drawTool();
      if (panel) panel.heading.focus();
      return true;
    },
    leave() {
      panel?.cancel();
      elicitations.close();
      connection.close();
    },
  };
}
