// @ts-check
// The sessions of users at authorization servers, and the clients that have registered there. Whoever may end some, can.

import * as api from "../api.js";
import { moment } from "../clock.js";
import { button, element, fill, foreign } from "../dom.js";
import { comparator } from "../filter.js";
import { count } from "../format.js";
import { link, objectLink } from "../router.js";
import { Table } from "../table.js";

/**
 * @typedef {import("../api.js").AuthServer} AuthServer
 * @typedef {import("../api.js").UserSession & {server: AuthServer}} Session
 * @typedef {import("../api.js").Client & {server: AuthServer}} Client
 * @typedef {import("../dom.js").Child} Child
 */

/** How many servers are read at the same time. The console lets each user have a few requests in flight. */
const PARALLEL = 3;

/** @type {import("../main.js").Page} */
export function sessions({ live, expire }, { query }) {
  const selection = { user: query.get("user") ?? "", client: query.get("client") ?? "" };
  const isSelected = Object.values(selection).some(Boolean);
  /** @type {AuthServer[]} */
  let servers = [];
  /** @type {Session[]} */
  let found = [];
  let isLeft = false;

  const state = element("p", { class: "quiet", role: "status" }, "Reading…");
  const problems = element("div");
  const question = element("div");
  const table = new Table("Sessions of users", sessionColumns(confirm), (one) => `${api.key(one.server)} ${one.id}`);
  table.root.classList.add("sessions");
  table.root.hidden = true;
  const endAll = element("p", { class: "actions" });
  const clients = element("details", { class: "raw" }, element("summary", null, "Registered clients"));
  clients.hidden = true;
  clients.addEventListener("toggle", () => clients.open && showClients(), { once: true });

  /** @param {unknown} error */
  const failed = (error) => {
    if (isLeft) return;
    if (error instanceof api.ApiError && error.status === 401) return expire(error);
    report(foreign(error instanceof Error ? error.message : String(error)));
  };
  /** @param {...Child} text */
  const report = (...text) => problems.append(element("p", { class: "problem" }, text));

  /**
   * Requests something of each of these servers, some at a time. One that fails is reported, and delays no other.
   * @template T
   * @param {AuthServer[]} all
   * @param {(server: AuthServer) => Promise<T>} send
   * @returns {Promise<{server: AuthServer, result: T}[]>}
   */
  async function ofEach(all, send) {
    const waiting = [...all];
    /** @type {{server: AuthServer, result: T}[]} */
    const results = [];
    const work = async () => {
      for (let server = waiting.shift(); server && !isLeft; server = waiting.shift()) {
        try {
          results.push({ server, result: await send(server) });
        } catch (error) {
          if (error instanceof api.ApiError && error.status === 401) throw error;
          report(name(server), ": ", foreign(error instanceof Error ? error.message : String(error)));
        }
      }
    };
    await Promise.all(Array.from({ length: PARALLEL }, work));
    return results;
  }

  async function load() {
    fill(problems);
    const known = await api.authServers();
    if (isLeft) return;
    servers = known.servers;
    const [seen, unseen] = [servers.filter(({ mayList }) => mayList), servers.filter(({ mayList }) => !mayList)];
    if (!known.isAvailable) return fill(state, UNAVAILABLE);
    if (servers.length === 0) return fill(state, "No server that you may see has an authorization server.");
    if (unseen.length > 0) report("You may not see the sessions of ", names(unseen), ". ", NEEDED);
    if (seen.length === 0) return fill(state);
    const listed = await ofEach(seen, (server) => api.userSessions(server, selection));
    if (isLeft) return;
    found = listed.flatMap(({ server, result }) => result.entries.map((entry) => ({ ...entry, server })));
    found.sort(comparator(({ since }) => since, true, (one) => `${one.id} ${api.key(one.server)}`));
    for (const { server, result } of listed)
      if (result.more) report(name(server), " has more sessions than are shown. Select those of a user or of a client.");
    fill(state, found.length === 0 ? "There are no such sessions." : found.length === 1 ? "1 session" : `${count(found.length)} sessions`);
    table.show(found);
    table.root.hidden = found.length === 0;
    const ending = listed.filter(({ server, result }) => server.mayEnd && result.entries.length > 0);
    const all = () => confirmAll(ending.map(({ server }) => server));
    fill(endAll, isSelected && ending.length > 0 && button("End all of these", all));
    clients.hidden = false;
  }

  /**
   * @param {Child} text
   * @param {string} label
   * @param {() => Promise<number>} act returns the number of sessions that have ended
   */
  function confirm(text, label, act) {
    const yes = button(label, async () => {
      yes.disabled = true;
      fill(problems);
      try {
        const ended = await act();
        if (isLeft) return;
        fill(question);
        await load();
        fill(state, `${ended === 1 ? "1 session has" : `${count(ended)} sessions have`} ended. `, ...state.childNodes);
      } catch (error) {
        fill(question);
        failed(error);
      }
    });
    const no = button("Cancel", () => fill(question));
    fill(question, element("div", { class: "notice" }, element("p", null, text), element("p", { class: "actions" }, yes, no)));
    yes.focus();
  }

  /** @param {AuthServer[]} ending */
  function confirmAll(ending) {
    const { user, client } = selection;
    const text = [
      "End all sessions",
      user && [" of the user ", foreign(user)],
      client && [" of the client ", foreign(client)],
      " at ",
      names(ending),
      "? Users log in again, and approve the client again.",
    ];
    confirm(text, "End them", async () => {
      const ended = await ofEach(ending, (server) => api.endSessions(server, selection));
      return ended.reduce((sum, { result }) => sum + result.ended, 0);
    });
  }

  async function showClients() {
    const place = element("div", null, element("p", { class: "quiet" }, "Reading…"));
    clients.append(place);
    try {
      const seen = servers.filter(({ mayList }) => mayList);
      const listed = await ofEach(seen, (server) => api.clients(server));
      if (isLeft) return;
      const all = listed.flatMap(({ server, result }) => result.entries.map((entry) => ({ ...entry, server })));
      const list = new Table("Registered clients", clientColumns(confirm), (one) => `${api.key(one.server)} ${one.id}`);
      list.root.classList.add("clients");
      list.show(all);
      const isMore = listed.some(({ result }) => result.more);
      fill(
        place,
        all.length > 0 ? list.root : element("p", { class: "quiet" }, "No client has registered and was used."),
        isMore && element("p", { class: "quiet" }, "and more: kubectl skep clients lists all"),
      );
    } catch (error) {
      failed(error);
    }
  }

  const user = element("input", { type: "search", id: "filter", autocomplete: "off", "aria-keyshortcuts": "/" });
  const client = element("input", { type: "search", autocomplete: "off" });
  user.value = selection.user;
  client.value = selection.client;
  const form = element(
    "form",
    { class: "filters", role: "search" },
    element("label", null, "User: subject or e-mail address", user),
    element("label", null, "Client: its id", client),
    element("button", { type: "submit" }, "Show"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const address = sessionsLink({ user: user.value.trim(), client: client.value.trim() });
    if (location.hash === address) load().catch(failed);
    else location.hash = address;
  });

  live.watch("", () => {});
  load().catch(failed);
  return {
    title: "Sessions",
    root: element(
      "div",
      null,
      element("h1", { tabindex: -1 }, "Sessions of users"),
      form,
      problems,
      question,
      state,
      endAll,
      table.root,
      clients,
    ),
    leave() {
      isLeft = true;
    },
  };
}

const UNAVAILABLE = [
  "This console does not administer sessions: in a cluster, console.sessions of the chart lets it do so. ",
  element("code", null, "kubectl skep sessions"),
  " does it anywhere.",
];
const NEEDED = ["That needs the right to ", element("code", null, "get"), " their subresource ", element("code", null, "sessions"), "."];

/** @typedef {(text: Child, label: string, act: () => Promise<number>) => void} Confirm */

/**
 * @param {Confirm} confirm
 * @returns {import("../table.js").Column<Session>[]}
 */
function sessionColumns(confirm) {
  return [
    {
      id: "user",
      title: "User",
      text: ({ user, name, email }) => `${user} ${name} ${email}`,
      content: ({ user, name, email }) => [
        element("a", { href: sessionsLink({ user: email || user }) }, foreign(email || name || user)),
        (email || name) && element("p", { class: "message" }, foreign(user)),
      ],
    },
    {
      id: "client",
      title: "Client",
      text: ({ client, clientName }) => `${client} ${clientName}`,
      content: ({ client, clientName }) => [
        element("a", { href: sessionsLink({ client }) }, foreign(clientName || client)),
        clientName && element("p", { class: "message" }, foreign(client)),
      ],
    },
    server(),
    { id: "since", title: "Since", text: ({ since }) => since ?? " ", content: ({ since }) => moment(since) },
    { id: "until", title: "Until", text: ({ until }) => until ?? " ", content: ({ until }) => moment(until) },
    {
      id: "action",
      title: "Action",
      text: ({ server }) => String(server.mayEnd),
      content: ({ server, id, user, name, email, clientName, client }) =>
        server.mayEnd &&
        button("End", () => {
          const text = [
            ...["End the session of ", foreign(email || name || user), " with ", foreign(clientName || client)],
            ...[" at ", objectName(server), "? The user logs in again, and approves the client again."],
          ];
          confirm(text, "End it", async () => (await api.endSessions(server, { session: id })).ended);
        }),
    },
  ];
}

/**
 * @param {Confirm} confirm
 * @returns {import("../table.js").Column<Client>[]}
 */
function clientColumns(confirm) {
  return [
    {
      id: "id",
      title: "Client",
      text: ({ id, name }) => `${id} ${name}`,
      content: ({ id, name }) => [
        element("a", { href: sessionsLink({ client: id }) }, foreign(name || id)),
        name && element("p", { class: "message" }, foreign(id)),
      ],
    },
    {
      id: "redirects",
      title: "Redirects",
      text: ({ redirectUris }) => redirectUris.join("\n"),
      content: ({ redirectUris }) => redirectUris.map((uri) => element("p", { class: "message" }, foreign(uri))),
    },
    server(),
    { id: "secret", title: "Secret", text: (client) => (client.public ? "no" : "yes") },
    {
      id: "action",
      title: "Action",
      text: ({ server }) => String(server.mayEnd),
      content: ({ server, id, name }) =>
        server.mayEnd &&
        button("Forget", () => {
          const text = ["Forget the client ", foreign(name || id), " at ", objectName(server), "? Its registration, its sessions, "];
          confirm([...text, "and the approvals of users end."], "Forget it", async () => {
            return (await api.forgetClient(server, id)).ended;
          });
        }),
    },
  ];
}

/** @returns {import("../table.js").Column<{server: AuthServer}>} */
const server = () => ({
  id: "server",
  title: "Server",
  text: ({ server }) => api.key(server),
  content: ({ server }) => name(server),
});

/** @param {AuthServer} server */
const name = (server) => element("a", { href: objectLink(server) }, objectName(server));

/** @param {AuthServer} server */
const objectName = ({ namespace, name }) => foreign(namespace ? `${namespace}/${name}` : name);

/** @param {AuthServer[]} servers */
const names = (servers) => servers.map((server, index) => [index > 0 && ", ", name(server)]);

/** @param {import("../api.js").Selection} selection */
const sessionsLink = ({ user = "", client = "" }) => {
  const query = new URLSearchParams(Object.entries({ user, client }).filter(([, value]) => value)).toString();
  return link("sessions") + (query && `?${query}`);
};
