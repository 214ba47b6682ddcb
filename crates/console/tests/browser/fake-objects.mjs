// Invented objects. Some of their texts are hostile, as those of anyone who may create an object or run a server.

export const HOSTILE = '<img src=x onerror="document.title=1"> \u202Egnp.exe\u0007 \u{e0041}';
const START = Date.parse("2026-11-16T20:00:00Z");

const KINDS = ["MCPServer", "MCPServer", "MCPServer", "MCPRemoteProxy", "VirtualMCPServer"];

/** @param {number} rows */
export function cluster(rows) {
  const servers = Array.from({ length: rows }, (_, index) => server(index));
  return [
    ...servers,
    summary({ kind: "MCPGroup", name: "everyday", phase: "Ready" }),
    summary({ kind: "MCPToolConfig", name: "renamed-tools", phase: "" }),
    summary({
      kind: "MCPOIDCConfig",
      name: "company-login",
      phase: "Failed",
      message: "the issuer https://login.example does not respond",
    }),
    summary({ name: "protected", phase: "Ready", tools: 2 }),
    summary({
      name: "hostile",
      namespace: "visitors",
      phase: `Failed ${HOSTILE}`,
      message: HOSTILE,
      url: "javascript:alert(1)",
      group: HOSTILE,
    }),
    summary({
      kind: "VirtualMCPServer",
      name: "everything",
      phase: "Degraded",
      message: "1 of 3 backends is unreachable: weather",
      tools: 7,
    }),
  ];
}

function server(index) {
  const isBad = index % 17 === 3;
  const isNew = index % 23 === 5;
  return summary({
    kind: KINDS[index % KINDS.length],
    namespace: ["default", "team-a", "team-b"][index % 3],
    name:
      index === 0
        ? "demo"
        : index === 1
          ? `a-server-with-a-very-long-name-${"that-goes-on-".repeat(12)}to-the-end`
          : `server-${index}`,
    phase: isBad ? "Failed" : isNew ? "Pending" : "Ready",
    message: isBad ? "the image ghcr.io/example/server:v9 cannot be pulled: not found" : "",
    tools: isNew ? null : (index * 7) % 31,
    group: index % 4 === 0 ? "everyday" : "",
    traffic: isBad || isNew ? null : traffic(index),
    since: new Date(START - index * 187_000).toISOString(),
  });
}

export function traffic(index) {
  return {
    perSecond: ((index * 13) % 40) / 4,
    errorsPerSecond: index % 11 === 0 ? 0.05 : 0,
    p50: 1 + (index % 9),
    p99: 10 + ((index * 37) % 400),
  };
}

export function summary(fields) {
  const { kind = "MCPServer", namespace = "default", name } = fields;
  return {
    kind,
    namespace,
    name,
    phase: "",
    message: "",
    since: new Date(START).toISOString(),
    url: `http://${name}.${namespace}.svc:8080/mcp`,
    transport: "streamable-http",
    tools: null,
    group: "",
    traffic: null,
    ...fields,
  };
}

export function call(id, fields = {}) {
  return {
    id,
    time: new Date().toISOString(),
    kind: "MCPServer",
    namespace: "default",
    name: "demo",
    method: "tools/call",
    target: "echo",
    caller: "alice",
    status: 200,
    error: null,
    failed: false,
    ms: 12.5,
    decidedBy: "",
    ...fields,
  };
}

/** @param {ReturnType<typeof summary>} object */
export function detail(object) {
  const text = object.name === "hostile" ? HOSTILE : "";
  const time = new Date(START).toISOString();
  return {
    ...object,
    conditions: [
      {
        type: "Ready",
        status: "True",
        reason: "Available",
        message: text || "1 of 1 pods is ready",
        lastTransitionTime: time,
      },
      { type: "Valid", status: "True", reason: "ReferencesResolved", message: "", lastTransitionTime: time },
    ],
    manifest: {
      apiVersion: "toolhive.stacklok.dev/v1beta1",
      kind: object.kind,
      metadata: { name: object.name },
      spec: { image: text || "example/server:v1" },
    },
    configuration: [
      { field: "transport", value: object.transport, origin: "spec", from: "" },
      { field: "proxyPort", value: 8080, origin: "default", from: "" },
      {
        field: "toolFilter",
        value: ["echo", text || "add"],
        origin: "reference",
        from: "MCPToolConfig default/renamed-tools",
      },
      { field: "resources", value: { limits: { cpu: "500m", memory: "256Mi" } }, origin: "spec", from: "" },
    ],
    objects: [
      { kind: "Deployment", name: object.name, state: "1 of 1 pods ready" },
      { kind: "Service", name: `mcp-${object.name}-proxy`, state: "port 8080" },
    ],
    seesEvents: true,
    restarts: restarts(object, text),
    events: [
      {
        time,
        type: "Warning",
        reason: "ImagePullBackOff",
        message: text || "the image was pulled after three attempts",
        object: `Pod ${object.name}-0`,
        count: 3,
      },
      {
        time,
        type: "Normal",
        reason: "Created",
        message: "the Deployment was created",
        object: `Deployment ${object.name}`,
        count: 1,
      },
    ],
    backends: backends(object),
    links: [
      { title: text || "Logs", url: `https://logs.example/?name=${object.name}` },
      { title: "Trap", url: "javascript:alert(1)" },
    ],
    reported:
      object.tools === null
        ? null
        : [
            { name: "echo", title: "Echo", readOnly: true, destructive: null, digest: "1" },
            { name: "hidden_from_you", title: "", readOnly: null, destructive: true, digest: "2" },
          ],
    connections: connections(object),
    calls:
      object.tools === null
        ? []
        : [
            call(2, { failed: true, status: 403, decidedBy: "authorization", target: text || "add", time }),
            call(1, { time }),
          ],
  };
}

function restarts(object, text) {
  const sentence = `Pod ${object.name}-0: the container mcp restarted 2 times, last at 2026-11-16T19:58:00Z: OOMKilled, exit code 137 (it used more memory than its limit)`;
  return ["demo", "hostile"].includes(object.name) ? [{ sentence: text || sentence, lastLine: text || "out of memory" }] : [];
}

function backends(object) {
  const backend = (name, more) => ({ name, phase: "ready", message: "", tools: null, offers: null, hidden: [], ...more });
  if (object.kind === "MCPGroup") return [backend("demo", { phase: "Ready", url: "", tools: 3 })];
  if (object.kind !== "VirtualMCPServer") return [];
  return [
    backend("echo", {
      url: "http://echo.default.svc:8080/mcp",
      tools: 1,
      offers: [{ name: "say", originalName: "say" }],
      hidden: ["up"],
    }),
    backend("add", {
      url: "http://add.default.svc:8080/mcp",
      tools: 2,
      offers: [
        { name: "add_down", originalName: "down" },
        { name: "up", originalName: "up" },
      ],
    }),
    backend("weather", { phase: "unavailable", message: "connection refused", url: "http://weather.default.svc:8080/mcp" }),
  ];
}

export const SESSION_SERVERS = [
  { kind: "VirtualMCPServer", namespace: "default", name: "everything", mayList: true, mayEnd: true },
  { kind: "MCPServer", namespace: "default", name: "demo", mayList: true, mayEnd: false },
  { kind: "MCPServer", namespace: "visitors", name: "hostile", mayList: false, mayEnd: false },
];

/** The sessions of users at authorization servers, by the name of the server. */
export function sessions() {
  const ann = { user: "1c0e0f4a-7f0b", name: "Ann", email: "ann@example.test" };
  const bob = { user: "c7a1d9d2-52a4", name: "", email: "" };
  const session = (id, user, more) => ({ id, ...user, client: "c-1", clientName: "Notes", since: null, until: null, ...more });
  return {
    everything: [
      session("s-1", ann, { since: "2026-11-16T19:00:00Z", until: "2036-11-16T19:00:00Z" }),
      session("s-2", ann, { client: "c-2", clientName: "" }),
      session("s-3", bob, { client: HOSTILE, clientName: HOSTILE }),
    ],
    demo: [session("s-1", ann, { since: "2026-11-16T20:00:00Z" })],
  };
}

/** Users of an authorization server. There are more than are shown. */
function connections(object) {
  const hours = (number) => new Date(Date.now() + number * 3_600_000).toISOString();
  if (object.name === "hostile") {
    const one = { user: HOSTILE, provider: HOSTILE, account: HOSTILE, since: "never", until: null, renewed: false };
    return { available: true, shared: true, total: 1, shown: [one] };
  }
  if (object.name !== "everything") return null;
  const ann = "1c0e0f4a-7f0b-4a55-9b1e-0d5a6f3c2b11";
  const bob = "c7a1d9d2-52a4-4a0e-8a37-0a7d1f0c9e42";
  return {
    available: true,
    shared: true,
    total: 1204,
    shown: [
      { user: ann, provider: "company", account: "ann@example.test", since: hours(-0.2), until: hours(1), renewed: true },
      { user: ann, provider: "calendar", account: "108234577123", since: hours(-0.2), until: null, renewed: false },
      { user: bob, provider: "company", account: "bob@example.test", since: hours(-30), until: hours(-22), renewed: false },
      { user: bob, provider: "calendar", account: "108234577999", since: null, until: hours(5.5), renewed: false },
    ],
  };
}
