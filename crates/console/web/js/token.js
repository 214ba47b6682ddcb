// @ts-check
// The token of a local console. `skep run` prints it as part of the address, as a fragment, which browsers never send. There is no
// cookie, because all ports of a host share cookies.

const PLACE = "skep.token";
let token = stored();

/**
 * Takes the token out of the address, so that it is neither shown nor part of the history.
 * @returns {boolean} whether there was one
 */
export function takeToken() {
  const found = /^#token=(.+)$/.exec(location.hash);
  if (!found) return false;
  token = decodeURIComponent(found[1]);
  history.replaceState(null, "", "#/");
  try {
    sessionStorage.setItem(PLACE, token);
  } catch {
    // Without storage the token lasts until the page is loaded again.
  }
  return true;
}

/** @returns {Record<string, string>} headers of every request to the console */
export function authorization() {
  return token ? { Authorization: `Bearer ${token}` } : {};
}

function stored() {
  try {
    return sessionStorage.getItem(PLACE) ?? "";
  } catch {
    return "";
  }
}
