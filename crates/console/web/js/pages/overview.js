// @ts-check
// All objects of the cluster.

import { key } from "../api.js";
import { moment } from "../clock.js";
import { button, element, fill, foreign, set } from "../dom.js";
import { objectFilter, WORKLOADS } from "../filter.js";
import { count, duration, NONE, rate } from "../format.js";
import { badge, isReady } from "../phase.js";
import { objectLink, remember } from "../router.js";
import { Table } from "../table.js";
import { sampling, Trend } from "../trend.js";

/**
 * @typedef {import("../api.js").Summary} Summary
 * @typedef {import("../table.js").Column<Summary>} Column
 */

/** @type {Column[]} */
const START = [
  {
    id: "name",
    title: "Name",
    text: ({ namespace, name, message, phase }) => `${namespace}/${name}/${phase}/${message}`,
    content: (object) => [
      object.namespace && element("span", { class: "namespace" }, foreign(object.namespace), "/"),
      element("a", { href: objectLink(object) }, foreign(object.name)),
      !isReady(object) && object.message && element("p", { class: "message" }, foreign(object.message)),
    ],
    order: ({ namespace, name }) => `${name}/${namespace}`,
  },
  { id: "kind", title: "Kind", text: ({ kind }) => kind, content: ({ kind }) => foreign(kind), order: ({ kind }) => kind },
  {
    id: "phase",
    title: "Phase",
    text: ({ phase }) => phase || " ",
    content: ({ phase }) => badge(phase),
    order: ({ phase }) => phase,
  },
];

/** @type {Column} */
const SINCE = {
  id: "since",
  title: "Since",
  text: ({ since }) => since ?? " ",
  content: ({ since }) => moment(since),
  order: ({ since }) => since,
};

/**
 * @param {string} id
 * @param {string} title
 * @param {(object: Summary) => number | null | undefined} figure
 * @param {(figure: number | null | undefined) => string} format
 * @returns {Column}
 */
const figure = (id, title, figure, format) => ({
  id,
  title,
  text: (object) => format(figure(object)),
  order: (object) => figure(object) ?? null,
  isFigure: true,
});

/** @type {Column[]} */
const FIGURES = [
  figure("tools", "Tools", ({ tools }) => tools, count),
  figure("calls", "Calls/s", ({ traffic }) => traffic?.perSecond, rate),
  figure("errors", "Errors/s", ({ traffic }) => traffic?.errorsPerSecond, rate),
  figure("p50", "p50", ({ traffic }) => traffic?.p50, duration),
  figure("p99", "p99", ({ traffic }) => traffic?.p99, duration),
];

/** @type {import("../main.js").Page} */
export function overview({ store, live }, { query }) {
  const text = element("input", {
    type: "search",
    id: "filter",
    "aria-label": "Filter by text",
    placeholder: "Filter by text: press /",
    "aria-keyshortcuts": "/",
  });
  text.value = query.get("text") ?? "";
  const kind = element("select", { "aria-label": "Kind" });
  const namespace = element("select", { "aria-label": "Namespace" });
  const wanted = { kind: query.get("kind") ?? "", namespace: query.get("namespace") ?? "" };
  const unready = button("Not ready", () => {
    set(unready, { "aria-pressed": unready.ariaPressed === "true" ? "false" : "true" });
    choose();
  });
  set(unready, { "aria-pressed": query.has("unready") ? "true" : "false" });

  const sorting = { sort: query.get("sort") ?? "name", changed: () => choose() };
  const servers = new Table("Servers and groups", [...START, ...FIGURES, SINCE], key, sorting);
  const configurations = new Table("Configurations", [...START, SINCE], key, { sort: "kind", changed: () => refresh() });
  servers.root.classList.add("overview");
  configurations.root.classList.add("configurations");

  const ready = element("output", { "aria-live": "off" }, NONE);
  const total = new Trend("Calls per second");
  const errors = new Trend("Errors per second");
  const shown = element("p", { class: "quiet", role: "status" });
  const others = element("section", { "aria-labelledby": "configurations", hidden: true });
  const heading = element("h2", { id: "configurations" }, "Configurations");
  others.append(heading, configurations.root);

  const refresh = () => {
    const all = [...store.objects.values()];
    offer(kind, "All kinds", wanted.kind, new Set(all.map((object) => object.kind)));
    offer(namespace, "All namespaces", wanted.namespace, new Set(all.map((object) => object.namespace)));
    const isUnready = unready.ariaPressed === "true";
    const matching = all.filter(objectFilter({ text: text.value, ...wanted, unready: isUnready }));
    const [workloads, rest] = [matching.filter(isWorkload), matching.filter((object) => !isWorkload(object))];
    servers.show(workloads);
    configurations.show(rest);
    others.hidden = rest.length === 0;
    servers.root.hidden = workloads.length === 0;
    fill(shown, store.isLoaded ? sentence(matching.length, all.length) : "Loading…");
    const every = all.filter(isWorkload);
    ready.textContent = `${count(every.filter(isReady).length)} of ${count(every.length)}`;
  };
  const choose = () => {
    Object.assign(wanted, { kind: kind.value, namespace: namespace.value });
    const isUnready = unready.ariaPressed === "true";
    remember({
      text: text.value,
      ...wanted,
      unready: isUnready ? "1" : "",
      sort: servers.sort === "name" ? "" : servers.sort,
    });
    refresh();
  };
  for (const control of [text, kind, namespace]) control.addEventListener("input", choose);

  refresh();
  live.watch("", () => {});
  const unsubscribe = store.subscribe(refresh);
  const stop = sampling(store, () => {
    const traffic = [...store.objects.values()].map((object) => object.traffic);
    total.sample(traffic.reduce((sum, figures) => sum + (figures?.perSecond ?? 0), 0));
    errors.sample(traffic.reduce((sum, figures) => sum + (figures?.errorsPerSecond ?? 0), 0));
  });
  return {
    title: "Servers",
    root: element(
      "div",
      null,
      element("h1", { tabindex: -1 }, "Servers"),
      element(
        "div",
        { class: "tiles" },
        element("div", { class: "tile" }, element("span", null, "Ready"), ready),
        total.root,
        errors.root,
      ),
      element("div", { class: "filters", role: "search" }, text, kind, namespace, unready, servers.choice),
      shown,
      servers.root,
      others,
    ),
    leave() {
      unsubscribe();
      stop();
    },
  };
}

/** @param {Summary} object */
const isWorkload = (object) => WORKLOADS.includes(object.kind);

/**
 * @param {number} matching
 * @param {number} all
 */
function sentence(matching, all) {
  if (all === 0) return "There are no objects yet. Create an MCPServer, and it appears here.";
  if (matching === all) return `${count(all)} objects`;
  return matching === 0 ? "No object matches." : `${count(matching)} of ${count(all)} objects match`;
}

/**
 * Offers the values that exist, and the chosen one.
 * @param {HTMLSelectElement} select
 * @param {string} all
 * @param {string} chosen
 * @param {Set<string>} values
 */
function offer(select, all, chosen, values) {
  const offered = ["", ...[...values.add(chosen)].filter(Boolean).sort()];
  if (offered.join("\n") !== [...select.options].map((option) => option.value).join("\n")) {
    fill(
      select,
      offered.map((value) => element("option", { value }, value || all)),
    );
  }
  if (select.value !== chosen) select.value = chosen;
}
