// `skep run` with a virtual server whose users log in at two providers, and these providers.

import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const PROVIDER = fileURLToPath(new URL("../../../../examples/authorization-server/identity-provider.mjs", import.meta.url));

/** Starts a program, and waits until it prints this. */
async function start(command, args, env, expected) {
  const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  let output = "";
  const found = await new Promise((resolve, reject) => {
    const read = (data) => {
      output += data;
      const found = expected.exec(output);
      if (found) resolve(found);
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    ended.then(() => reject(new Error(`${command} ended: ${output}`)));
  });
  return { found, output, stop: () => (child.kill("SIGTERM"), ended) };
}

/** A port that is free now. */
async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const manifests = (provider) => {
  const upstream = (name) => `{name: ${name}, type: oauth2, oauth2Config: {
      authorizationEndpoint: "${provider}/auth", tokenEndpoint: "${provider}/token", userInfo: {endpointUrl: "${provider}/me"},
      clientId: skep, clientSecretRef: {name: login, key: secret}, scopes: [openid, offline_access],
      additionalAuthorizationParams: {prompt: consent}}}`;
  return `
apiVersion: toolhive.stacklok.dev/v1beta1
kind: MCPServer
metadata: {name: demo, annotations: {skep.dev/local-command: skep demo-server}}
spec: {image: example.com/demo:1, transport: stdio, groupRef: {name: all}}
---
apiVersion: toolhive.stacklok.dev/v1beta1
kind: MCPGroup
metadata: {name: all}
spec: {}
---
apiVersion: toolhive.stacklok.dev/v1beta1
kind: VirtualMCPServer
metadata: {name: joined}
spec:
  groupRef: {name: all}
  incomingAuth: {type: oidc, oidcConfigRef: {name: own, audience: "https://mcp.example/mcp", resourceUrl: "https://mcp.example/mcp"}}
  authServerConfig: {issuer: "https://mcp.example", upstreamProviders: [${upstream("company")}, ${upstream("calendar")}]}
---
apiVersion: toolhive.stacklok.dev/v1beta1
kind: MCPOIDCConfig
metadata: {name: own}
spec: {type: inline, inline: {issuer: "https://mcp.example"}}
---
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {secret: replace-me}
`;
};

/** Everything that a login needs: the servers, and a client that waits for its user to come back. */
export async function startServers() {
  const port = await freePort();
  const path = `${process.env.SKEP_OAUTH_MODULES.replace(/\/$/, "")}/.bin:${process.env.PATH}`;
  const provider = await start("node", [PROVIDER, String(port)], { PATH: path }, /is at (\S+)/);
  const folder = await mkdtemp(join(tmpdir(), "login-"));
  const file = join(folder, "servers.yaml");
  await writeFile(file, manifests(`http://127.0.0.1:${port}`));
  const run = await start(process.env.SKEP, ["run", "-f", file], { XDG_STATE_HOME: folder }, /^joined +(\S+)\/mcp /m);
  const client = createServer((_, response) => response.setHeader("content-type", "text/plain").end("back in the client"));
  await new Promise((resolve) => client.listen(0, "127.0.0.1", resolve));
  return {
    origin: run.found[1],
    console: /^Console: (\S+)$/m.exec(run.output)[1],
    provider: provider.found[1],
    redirectUri: `http://127.0.0.1:${client.address().port}/cb`,
    async stop() {
      client.close();
      client.closeAllConnections();
      await run.stop();
      await provider.stop();
      await rm(folder, { recursive: true });
    },
  };
}

/** Registers a client of this name, and returns what it needs for a login. */
export async function newClient({ origin, redirectUri }, name) {
  const registered = await fetch(`${origin}/oauth/register`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ client_name: name, redirect_uris: [redirectUri], token_endpoint_auth_method: "none" }),
  });
  const { client_id } = await registered.json();
  const verifier = randomBytes(32).toString("base64url");
  const url = new URL(`${origin}/oauth/authorize`);
  url.search = new URLSearchParams({
    response_type: "code", client_id, redirect_uri: redirectUri, state: "of-the-client", scope: "openid profile offline_access",
    resource: `${origin}/mcp`, code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
  });
  return {
    url: url.href,
    /** The access token for a code. */
    async token(code) {
      const form = { grant_type: "authorization_code", client_id, code, redirect_uri: redirectUri, code_verifier: verifier };
      const response = await fetch(`${origin}/oauth/token`, { method: "POST", body: new URLSearchParams(form) });
      return (await response.json()).access_token;
    },
  };
}
