// A browser that approves every client, and logs in as Ann at every provider.
//
//   node browser.mjs ADDRESS REDIRECT_URI    prints where it is sent in the end
import { argv } from 'node:process';
import { pathToFileURL } from 'node:url';

const cookies = new Map();

async function open(url, form) {
  const host = new URL(url).host;
  const jar = cookies.get(host) ?? new Map();
  cookies.set(host, jar);
  const response = await fetch(url, {
    method: form ? 'POST' : 'GET',
    redirect: 'manual',
    headers: {
      cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; '),
      ...(form ? { origin: new URL(url).origin } : {}),
    },
    body: form ? new URLSearchParams(form) : undefined,
  });
  for (const cookie of response.headers.getSetCookie()) {
    const [, name, value] = /^([^=]+)=([^;]*)/.exec(cookie);
    jar.set(name, value);
  }
  return response;
}

const text = (html) => html.replaceAll('&amp;', '&').replaceAll('&#39;', "'").replaceAll('&quot;', '"');

/** Opens an address, and returns the one below `redirectUri` that the browser is sent to in the end. */
export async function logIn(address, redirectUri) {
  let url = String(address);
  let form;
  for (let step = 0; step < 30; step += 1) {
    const response = await open(url, form);
    form = undefined;
    const location = response.headers.get('location');
    if (location) {
      url = new URL(location, url).href;
      if (url.startsWith(redirectUri)) return new URL(url);
      continue;
    }
    const page = await response.text();
    if (response.status !== 200) throw new Error(`${url}: ${response.status}: ${page}`);
    const action = text(/<form[^>]* action="([^"]*)"/.exec(page)[1]);
    const hidden = [...page.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)];
    form = Object.fromEntries(hidden.map(([, name, value]) => [name, text(value)]));
    if (page.includes('name="decision"')) form.decision = 'allow';
    if (page.includes('name="login"')) Object.assign(form, { login: 'ann', password: 'any' });
    url = new URL(action, url).href;
  }
  throw new Error('the login does not end');
}

if (import.meta.url === pathToFileURL(argv[1]).href) {
  console.log((await logIn(argv[2], argv[3])).href);
  process.exit(0);
}
