// An identity provider on this machine, to try an authorization server with. It accepts every name and password.
//
//   npx --yes --package oidc-provider@9 -- node examples/authorization-server/identity-provider.mjs
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

// npx puts the programs of its packages at the front of PATH.
const programs = process.env.PATH.split(':').find((folder) => folder.endsWith('/node_modules/.bin'));
const { Provider } = await import(pathToFileURL(createRequire(`${programs}/x`).resolve('oidc-provider')));

const port = Number(process.argv[2] ?? 9400);
const issuer = `http://127.0.0.1:${port}`;
const provider = new Provider(issuer, {
  clients: [{
    client_id: 'skep',
    client_secret: 'replace-me',
    token_endpoint_auth_method: 'client_secret_post',
    // A native application may use any port of loopback.
    application_type: 'native',
    redirect_uris: ['http://127.0.0.1/oauth/callback'],
    grant_types: ['authorization_code', 'refresh_token'],
  }],
  claims: { openid: ['sub', 'name', 'email'] },
  features: { revocation: { enabled: true } },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, name: id, email: `${id}@example.com` }),
  }),
});
provider.listen(port, '127.0.0.1', () => console.log(`the identity provider is at ${issuer}`));
