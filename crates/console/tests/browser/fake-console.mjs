// A console without a cluster: the files of the page, the API with invented objects, and MCP servers that do what a test needs.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { FakeMcp } from "./fake-mcp.mjs";
import { cluster, detail, SESSION_SERVERS, sessions } from "./fake-objects.mjs";

const WEB = fileURLToPath(new URL("../../web", import.meta.url));
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
const POLICY = await readFile(new URL("../../src/content-security-policy", import.meta.url), "utf8");

export const TOKEN = "a-local-token";
/** On this machine, a console has no cookie. */
const SESSION = "skep-session-of-alice";

/** @param {{rows?: number, mode?: "local" | "cluster", provider?: string}} options */
export async function startFakeConsole({ rows = 40, mode = "local", provider = "" } = {}) {
  const console = new FakeConsole(rows, mode, provider);
  await new Promise((resolve) => console.server.listen(0, "127.0.0.1", resolve));
  const { port } = console.server.address();
  console.origin = `http://127.0.0.1:${port}`;
  console.url = mode === "local" ? `${console.origin}/#token=${TOKEN}` : `${console.origin}/`;
  return console;
}

class FakeConsole {
  streams = new Set();
  mcp = new FakeMcp();
  requests = [];
  isSignedIn = false;
  token = TOKEN;
  isFull = false;
  /** The paths of requests whose connection ends without a response. */
  lost = new Set();
  seesCalls = true;
  seesEvents = true;
  /** The servers with an authorization server, and the sessions there. */
  authServers = { isAvailable: true, servers: SESSION_SERVERS };
  sessions = sessions();
  /** The name of a server that does not respond about sessions. */
  failing = "";
  /** Who logs in at the provider. */
  user = "alice";

  constructor(rows, mode, provider) {
    this.mode = mode;
    this.provider = provider;
    this.objects = cluster(rows);
    this.server = createServer((request, response) => {
      this.respond(request, response).catch((error) => response.destroy(error));
    });
  }

  /** Sends an event to every page that is connected. */
  emit(event, data) {
    for (const { response } of this.streams) response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  close() {
    this.server.close();
    this.server.closeAllConnections();
  }

  async respond(request, response) {
    const url = new URL(request.url, this.origin);
    this.requests.push(`${request.method} ${url.pathname}${url.search}`);
    if (this.lost.has(url.pathname)) return request.destroy();
    response.setHeader("Content-Security-Policy", POLICY);
    response.setHeader("X-Content-Type-Options", "nosniff");
    if (url.pathname === "/health") return response.end("ok\n");
    if (url.pathname === "/login/callback") return this.finishLogin(url, response);
    if (!url.pathname.startsWith("/api/")) return this.file(url.pathname, response);
    const isMarked = request.headers["x-skep-console"] === "1";
    if ((request.method !== "GET" || url.pathname.startsWith("/api/mcp/")) && !isMarked)
      return json(response, 403, { error: "no header" });
    const path = url.pathname.split("/").slice(2).map(decodeURIComponent);
    if (path[0] === "session" && request.method === "POST") return this.signIn(request, response);
    if (path[0] === "login" && this.provider)
      return json(response, 200, { location: `${this.origin}/login/callback?as=${this.user}&state=of-${this.user}` });
    const credential = this.mode === "local" ? this.token : this.isSignedIn && SESSION;
    const isAllowed = request.headers.authorization === `Bearer ${credential}`;
    if (!isAllowed) return json(response, 401, { error: "not signed in", mode: this.mode, provider: this.provider });
    if (path[0] === "session" && request.method === "DELETE")
      return ((this.isSignedIn = false), response.writeHead(204).end());
    if (path[0] === "session") {
      const links = [
        { title: "Grafana", url: "https://grafana.example" },
        { title: "Bad", url: "javascript:alert(1)" },
      ];
      return json(response, 200, { mode: this.mode, user: "alice", version: "0.1.0", links });
    }
    if (path[0] === "objects" && path.length === 1) return json(response, 200, { objects: this.objects });
    if (path[0] === "objects") {
      const found = this.objects.find(
        (object) => path.slice(1).join("/") === `${object.kind}/${object.namespace}/${object.name}`,
      );
      const calls = this.seesCalls ? {} : { calls: [], connections: null };
      const events = this.seesEvents ? {} : { seesEvents: false, events: [], restarts: [] };
      return found
        ? json(response, 200, { ...detail(found), seesCalls: this.seesCalls, ...calls, ...events })
        : json(response, 404, { error: "there is no such object" });
    }
    if (path[0] === "sessions" && path.length === 1) return json(response, 200, this.authServers);
    if (path[0] === "sessions" || path[0] === "clients") return this.administer(path, url.searchParams, request.method, response);
    if (path[0] === "events") return this.stream(url, request, response);
    if (path[0] === "mcp") return this.mcp.respond(path.slice(1).join("/"), request, response, await body(request));
    json(response, 404, { error: "there is no such path" });
  }

  /** Lists and ends sessions of a server, and forgets its clients. */
  administer([what, , , name], query, method, response) {
    if (name === this.failing) return json(response, 502, { error: "a pod of the server does not respond" });
    const all = this.sessions[name];
    const is = (wanted, ...found) => wanted === null || found.includes(wanted);
    const means = ({ id, user, email, client }) =>
      is(query.get("session"), id) && is(query.get("user"), user, email) && is(query.get("client"), client);
    if (method === "DELETE") {
      this.sessions[name] = all.filter((one) => !means(one));
      return json(response, 200, { ended: all.length - this.sessions[name].length });
    }
    const clients = [{ id: "c-1", name: "Notes", redirectUris: ["http://127.0.0.1:7777/callback"], public: true }];
    json(response, 200, { entries: what === "clients" ? clients : all.filter(means), more: false });
  }

  /** The page of the provider is left out: it sends the browser back at once. */
  finishLogin(url, response) {
    this.isSignedIn = url.searchParams.get("as") === "alice";
    const state = url.searchParams.get("state");
    const page = this.isSignedIn ? `/#token=${SESSION}&state=${state}` : "/#login=refused";
    response.writeHead(303, { Location: page }).end();
  }

  async signIn(request, response) {
    const { token } = JSON.parse(await body(request));
    if (token !== "good") return json(response, 401, { error: "the token is not valid" });
    this.isSignedIn = true;
    json(response, 200, { session: SESSION });
  }

  stream(url, request, response) {
    if (this.isFull) return json(response, 503, { error: "too many pages are open: close one" });
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.write(":\n\n");
    const stream = { response, calls: url.searchParams.get("calls") ?? "" };
    this.streams.add(stream);
    request.on("close", () => this.streams.delete(stream));
  }

  async file(path, response) {
    try {
      const name = path === "/" ? "/index.html" : path;
      const text = await readFile(WEB + name);
      response.writeHead(200, { "Content-Type": TYPES[extname(name)] ?? "text/plain" }).end(text);
    } catch {
      response.writeHead(404).end();
    }
  }
}

async function body(request) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

export function json(response, status, value, headers = {}) {
  response.writeHead(status, { "Content-Type": "application/json", ...headers }).end(JSON.stringify(value));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const running = await startFakeConsole({ rows: Number(process.argv[2] ?? 40) });
  process.stdout.write(`${running.url}\n`);
}
