// @ts-check
// The address that was open before a login, which leads through the pages of another site.

const KEY = "skep-place";

export function keepPlace() {
  sessionStorage.setItem(KEY, location.hash);
}

/** Opens it again, once. */
export function returnToPlace() {
  const place = sessionStorage.getItem(KEY);
  sessionStorage.removeItem(KEY);
  if (place?.startsWith("#/") && ["", "#/"].includes(location.hash)) history.replaceState(null, "", place);
}

/** Why a login failed, in the address. It is removed there. */
export function takeFailure() {
  const failure = /^#login=([a-z]+)$/.exec(location.hash)?.[1] ?? "";
  if (failure) history.replaceState(null, "", location.pathname);
  return failure;
}
