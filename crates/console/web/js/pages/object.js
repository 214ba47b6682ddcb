// @ts-check
// One object: how it is, why, and what it does.

import * as api from "../api.js";
import { Calls, callsTable, onceAFrame } from "../calls-table.js";
import { block, element, fill, foreign } from "../dom.js";
import { SERVERS } from "../filter.js";
import { duration, NONE } from "../format.js";
import { isServing } from "../phase.js";
import { link } from "../router.js";
import { json } from "../text.js";
import { sampling, Trend } from "../trend.js";
import { backends } from "./backends.js";
import { connections } from "./connections.js";
import { conditions, configuration, events, heading, objects } from "./sections.js";
import { Tools } from "./tools.js";

/**
 * @typedef {import("../api.js").Detail} Detail
 * @typedef {import("../mcp.js").Tool} Tool
 */

/** Events and created objects change without an event of the stream. */
const RELOAD = 15_000;
const SHOWN_CALLS = 20;

/** @type {import("../main.js").Page} */
export function object({ store, live, expire }, { parts }) {
  const [kind = "", namespace = "", name = ""] = parts;
  const ref = { kind, namespace, name };
  const id = api.key(ref);
  const isServer = SERVERS.includes(kind);

  const head = element("div", { class: "head" });
  const sections = {
    conditions: section("Conditions"),
    tools: section("Tools"),
    backends: section(kind === "MCPGroup" ? "Members" : "Backends"),
    connections: section("Connections of users"),
    calls: section("Last calls"),
    configuration: section("Configuration as it takes effect"),
    objects: section("Objects"),
    events: section("Events"),
    manifest: section("Manifest"),
  };
  const trend = new Trend("Calls per second");
  const errors = new Trend("Errors per second");
  const latency = element("output", { "aria-live": "off" }, NONE);
  const figures = element(
    "div",
    { class: "tiles", hidden: true },
    trend.root,
    errors.root,
    element("div", { class: "tile" }, element("span", null, "p50 / p99"), latency),
  );

  const kept = new Calls();
  const table = callsTable("Last calls, newest first", false);
  const noCalls = element("p", { class: "quiet" }, "No calls yet.");
  const more = element(
    "p",
    null,
    element("a", { href: `${link("calls")}?text=${encodeURIComponent(id)}` }, "All live calls of this object"),
  );
  sections.calls.append(noCalls, table.root, more);
  const showCalls = onceAFrame(() => {
    noCalls.textContent = detail?.seesCalls === false ? "You may not read the calls of this object." : "No calls yet.";
    table.show(kept.list.slice(0, SHOWN_CALLS));
    table.root.hidden = kept.list.length === 0;
    noCalls.hidden = kept.list.length > 0;
  });

  /** @type {Detail | null} */
  let detail = null;
  /** @type {Tool[]} */
  let offered = [];
  const tools = new Tools(ref, (listed) => ((offered = listed), draw()), expire);
  let isConnected = false;
  if (isServer) sections.tools.append(tools.root);

  /** The data that each part shows: a part is drawn again when its data changed, and keeps focus and selection otherwise.
   * @type {Map<HTMLElement, string>} */
  const drawn = new Map();
  /**
   * @param {HTMLElement} part
   * @param {unknown} data
   * @param {() => import("../dom.js").Child} content
   */
  const show = (part, data, content) => {
    const text = JSON.stringify(data ?? null);
    if (drawn.get(part) === text) return;
    drawn.set(part, text);
    part.hidden = Array.isArray(data) && data.length === 0;
    fill(part, part.firstElementChild?.tagName === "H2" && part.firstElementChild, content());
  };

  const draw = () => {
    const summary = store.objects.get(id);
    const known = detail && { ...detail, ...summary };
    if (!known) return;
    show(head, [known.phase, known.message, known.since, known.url, known.transport, known.group, known.links], () => heading(known));
    show(sections.conditions, known.conditions, () => conditions(known.conditions));
    show(sections.configuration, known.configuration, () => configuration(known.configuration));
    show(sections.objects, known.objects ?? [], () => objects(known.objects ?? []));
    const happened = known.events.length + known.restarts.length > 0 || !known.seesEvents;
    show(sections.events, happened ? [known.events, known.restarts, known.seesEvents] : [], () => events(known));
    show(sections.backends, known.backends.length > 0 ? [known.backends, offered.map(({ name }) => name)] : [], () =>
      backends(known, offered, store),
    );
    const { connections: connected } = known;
    show(sections.connections, connected ? [connected] : [], () => [
      connected && connections(connected),
      element("p", null, element("a", { href: link("sessions") }, "Sessions of users")),
    ]);
    show(sections.manifest, [known.manifest], () =>
      element("details", null, element("summary", null, "Show the manifest as JSON"), block(json(known.manifest))),
    );
    sections.tools.hidden = !isServer;
    sections.calls.hidden = !isServer;
    figures.hidden = !known.traffic;
    latency.textContent = `${duration(known.traffic?.p50)} / ${duration(known.traffic?.p99)}`;
    if (isServer && !isConnected && isServing(known)) {
      isConnected = true;
      tools.connection.open();
    } else if (isServer && !tools.connection.client) tools.connection.offer();
  };

  let isLeft = false;
  const load = async () => {
    try {
      const loaded = await api.detail(ref);
      if (isLeft) return;
      detail = loaded;
      for (const call of detail.calls.toReversed()) kept.add({ ...call, ...ref });
      if (detail.reported) tools.report(detail.reported);
      showCalls();
      draw();
    } catch (error) {
      if (isLeft) return;
      if (error instanceof api.ApiError && error.status === 401) return expire(error);
      const message = error instanceof Error ? error.message : String(error);
      if (!detail) fill(head, element("p", { class: "problem" }, foreign(message)));
    }
  };
  load();
  live.watch(
    id,
    (call) => (kept.add(call), showCalls()),
    (connections) => {
      if (detail) detail = { ...detail, connections };
      draw();
    },
  );
  let shown = store.objects.get(id);
  const unsubscribe = store.subscribe((changed) => {
    if (!changed.has(id)) return;
    const now = store.objects.get(id);
    if (!now) {
      drawn.delete(head);
      return fill(head, element("p", { class: "problem" }, "This object was deleted."));
    }
    const isMore = JSON.stringify({ ...now, traffic: null }) !== JSON.stringify({ ...shown, traffic: null });
    shown = now;
    if (isMore) load();
    else draw();
  });
  const reload = setInterval(() => !document.hidden && load(), RELOAD);
  const stop = sampling(store, () => {
    const traffic = store.objects.get(id)?.traffic;
    trend.sample(traffic?.perSecond ?? 0);
    errors.sample(traffic?.errorsPerSecond ?? 0);
  });
  return {
    title: name,
    root: element(
      "div",
      null,
      element(
        "p",
        { class: "quiet" },
        element("a", { href: "#/" }, "Servers"),
        " / ",
        foreign(kind),
        namespace && [" / ", foreign(namespace)],
      ),
      element("h1", { tabindex: -1 }, foreign(name)),
      head,
      figures,
      element(
        "div",
        { class: "columns" },
        element("div", null, sections.conditions, sections.tools, sections.backends),
        element("div", null, sections.configuration, sections.objects, sections.events, sections.manifest),
        sections.connections,
        sections.calls,
      ),
    ),
    leave() {
      isLeft = true;
      clearInterval(reload);
      unsubscribe();
      stop();
      tools.connection.close();
    },
  };
}

/** @param {string} title */
function section(title) {
  const id = `section-${title.toLowerCase().replaceAll(" ", "-")}`;
  return element("section", { "aria-labelledby": id, hidden: true }, element("h2", { id }, title));
}
