// @ts-check
// Calls of all servers, as they end.

import { Calls, callsTable, onceAFrame } from "../calls-table.js";
import { button, element, fill, set } from "../dom.js";
import { callFilter } from "../filter.js";
import { count } from "../format.js";
import { remember } from "../router.js";

/** @type {import("../main.js").Page} */
export function calls({ live }, { query }) {
  const kept = new Calls();
  const table = callsTable("Calls, newest first", true);
  const text = element("input", {
    type: "search",
    id: "filter",
    "aria-label": "Filter by method, tool, caller, status or decision",
    placeholder: "Filter by method, tool, caller, status: press /",
    "aria-keyshortcuts": "/",
  });
  text.value = query.get("text") ?? "";
  const shown = element("p", { class: "quiet" });
  /** What arrived during a pause; null while there is none.
   * @type {import("../api.js").Call[] | null} */
  let held = null;
  const pause = button(
    "Pause",
    () => {
      for (const call of held ?? []) kept.add(call);
      held = held ? null : [];
      set(pause, { "aria-pressed": held ? "true" : "false" });
      refresh();
    },
    { "aria-pressed": "false" },
  );

  const refresh = onceAFrame(() => {
    const matching = kept.list.filter(callFilter(text.value));
    table.show(matching);
    table.root.hidden = matching.length === 0;
    const waiting = held ? `; ${count(held.length)} more since the pause` : "";
    const hint =
      kept.list.length === 0
        ? "Waiting for calls. They appear as they end."
        : `${count(matching.length)} of the last ${count(kept.list.length)} calls`;
    fill(shown, hint + waiting);
  });
  text.addEventListener("input", () => {
    remember({ text: text.value });
    refresh();
  });
  live.watch("all", (call) => {
    if (held) held = [...held.slice(-499), call];
    else kept.add(call);
    refresh();
  });
  refresh();
  return {
    title: "Live calls",
    root: element(
      "div",
      null,
      element("h1", { tabindex: -1 }, "Live calls"),
      element("div", { class: "filters", role: "search" }, text, pause),
      shown,
      table.root,
    ),
    leave() {},
  };
}
