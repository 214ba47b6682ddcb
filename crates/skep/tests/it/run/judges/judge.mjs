// Clients of OAuth that others wrote: discovery, registration, login, refresh and a tool call.
//
//   node judge.mjs MODULES JUDGE URL [CLIENT_ID]    the client id is the address of a document; without it, the client registers
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { logIn } from './browser.mjs';

const [modules, judge, address, documentUrl] = process.argv.slice(2);
const require = createRequire(`${modules}/x`);
const load = (name) => import(pathToFileURL(require.resolve(name)));
const redirectUri = 'http://127.0.0.1:7777/cb';
const metadata = { client_name: judge, redirect_uris: [redirectUri], token_endpoint_auth_method: 'none' };
const scope = 'openid offline_access';

/** Lists the tools with a token, and calls one. */
async function tools(token) {
  const send = async (body, session) => {
    const response = await fetch(address, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
        ...(session ? { 'mcp-session-id': session } : {}),
      },
      body: JSON.stringify({ jsonrpc: '2.0', ...body }),
    });
    if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
    return response;
  };
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: judge, version: '1' } };
  const begun = await send({ id: 1, method: 'initialize', params });
  const session = begun.headers.get('mcp-session-id');
  await begun.text();
  const listed = await send({ id: 2, method: 'tools/list', params: {} }, session);
  const names = [...(await listed.text()).matchAll(/"name":"([a-z_]+)"/g)].map(([, name]) => name);
  const call = { name: names.find((name) => name.endsWith('echo')), arguments: { message: 'hello' } };
  const called = await (await send({ id: 3, method: 'tools/call', params: call }, session)).text();
  if (!called.includes('hello')) throw new Error(called);
  return names;
}

const judges = {
  async oauth4webapi() {
    const oauth = await load('oauth4webapi');
    const insecure = { [oauth.allowInsecureRequests]: true };
    const resource = new URL(address);
    const described = await oauth.resourceDiscoveryRequest(resource, insecure);
    const protectedResource = await oauth.processResourceDiscoveryResponse(resource, described);
    const issuer = new URL(protectedResource.authorization_servers[0]);
    const found = await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...insecure });
    const server = await oauth.processDiscoveryResponse(issuer, found);
    const client = documentUrl ? { client_id: documentUrl } : await register();
    const verifier = oauth.generateRandomCodeVerifier();
    const state = oauth.generateRandomState();
    const url = new URL(server.authorization_endpoint);
    url.search = new URLSearchParams({
      client_id: client.client_id, response_type: 'code', redirect_uri: redirectUri, scope, state, resource: resource.href,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256',
    });
    const back = await logIn(url, redirectUri);
    const parameters = oauth.validateAuthResponse(server, client, back, state);
    const additional = { additionalParameters: { resource: resource.href }, ...insecure };
    const exchanged = await oauth.authorizationCodeGrantRequest(
      server, client, oauth.None(), parameters, redirectUri, verifier, additional,
    );
    const first = await oauth.processAuthorizationCodeResponse(server, client, exchanged);
    const refreshed = await oauth.refreshTokenGrantRequest(server, client, oauth.None(), first.refresh_token, insecure);
    const second = await oauth.processRefreshTokenResponse(server, client, refreshed);
    if (second.refresh_token === first.refresh_token) throw new Error('the refresh token was not replaced');
    const ended = await oauth.revocationRequest(server, client, oauth.None(), (await again()).refresh_token, insecure);
    await oauth.processRevocationResponse(ended);
    return tools(second.access_token);

    async function register() {
      const registered = await oauth.dynamicClientRegistrationRequest(server, metadata, insecure);
      return oauth.processDynamicClientRegistrationResponse(registered);
    }

    /** Another session, to be revoked. */
    async function again() {
      const verifier = oauth.generateRandomCodeVerifier();
      url.searchParams.set('code_challenge', await oauth.calculatePKCECodeChallenge(verifier));
      const parameters = oauth.validateAuthResponse(server, client, await logIn(url, redirectUri), state);
      const response = await oauth.authorizationCodeGrantRequest(
        server, client, oauth.None(), parameters, redirectUri, verifier, additional,
      );
      return oauth.processAuthorizationCodeResponse(server, client, response);
    }
  },

  async 'openid-client'() {
    const openid = await load('openid-client');
    const page = await fetch(new URL('/.well-known/oauth-protected-resource/mcp', address));
    const issuer = new URL((await page.json()).authorization_servers[0]);
    const options = { algorithm: 'oauth2', execute: [openid.allowInsecureRequests] };
    const config = documentUrl
      ? await openid.discovery(issuer, documentUrl, undefined, openid.None(), options)
      : await openid.dynamicClientRegistration(issuer, metadata, openid.None(), options);
    const verifier = openid.randomPKCECodeVerifier();
    const state = openid.randomState();
    const url = openid.buildAuthorizationUrl(config, {
      redirect_uri: redirectUri, scope, state, resource: address,
      code_challenge: await openid.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256',
    });
    const back = await logIn(url, redirectUri);
    const checks = { pkceCodeVerifier: verifier, expectedState: state };
    const first = await openid.authorizationCodeGrant(config, back, checks, { resource: address });
    const second = await openid.refreshTokenGrant(config, first.refresh_token);
    return tools(second.access_token);
  },

  async sdk() {
    const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
    const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
    const saved = { times: 0 };
    let back;
    const authProvider = {
      redirectUrl: redirectUri,
      clientMetadataUrl: documentUrl,
      clientMetadata: { ...metadata, scope, grant_types: ['authorization_code', 'refresh_token'] },
      clientInformation: () => saved.client,
      saveClientInformation: (client) => { saved.client = client; },
      tokens: () => saved.tokens,
      saveTokens: (tokens) => { saved.tokens = tokens; saved.times += 1; },
      codeVerifier: () => saved.verifier,
      saveCodeVerifier: (verifier) => { saved.verifier = verifier; },
      redirectToAuthorization: async (url) => { back = await logIn(url, redirectUri); },
    };
    const transport = () => new StreamableHTTPClientTransport(new URL(address), { authProvider });
    const connect = async () => {
      const client = new Client({ name: judge, version: '1' });
      const connection = transport();
      try {
        await client.connect(connection);
      } catch (error) {
        if (!back) throw error;
        await connection.finishAuth(back.searchParams.get('code'));
        back = undefined;
        return connect();
      }
      return client;
    };
    await (await connect()).listTools();
    // A token that is not accepted makes it refresh.
    saved.tokens = { ...saved.tokens, access_token: 'expired' };
    const client = await connect();
    if (saved.times !== 2) throw new Error(`tokens were saved ${saved.times} times`);
    if (documentUrl && saved.client.client_id !== documentUrl) throw new Error(`it registered as ${saved.client.client_id}`);
    const names = (await client.listTools()).tools.map((tool) => tool.name);
    const called = await client.callTool({ name: names.find((name) => name.endsWith('echo')), arguments: { message: 'hello' } });
    if (called.isError || !JSON.stringify(called.content).includes('hello')) throw new Error(JSON.stringify(called));
    await client.close();
    return names;
  },
};

console.log(JSON.stringify(await judges[judge]()));
process.exit(0);
