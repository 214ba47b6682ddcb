// @ts-check
// Loads the page again, once the console responds, if a file of it has not arrived: a browser ends all its requests when an
// interface of its machine changes. No module, so that it runs if one of those is missing.

{
  // If loading it again has not helped, something keeps the file from arriving: the page must not load itself every second.
  const navigation = /** @type {PerformanceNavigationTiming} */ (performance.getEntriesByType("navigation")[0]);
  const PAUSE = navigation?.type === "reload" ? 15_000 : 1000;
  let isWaiting = false;

  async function reload() {
    if (isWaiting) return;
    isWaiting = true;
    const main = document.getElementById("main");
    if (main && !main.querySelector("h1")) main.textContent = "The console does not respond. The page is loaded again when it does.";
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
      const response = await fetch("/health").catch(() => null);
      if (response?.ok) return location.reload();
    }
  }

  const isFile = (/** @type {EventTarget | null} */ target) =>
    target instanceof HTMLScriptElement || target instanceof HTMLLinkElement;
  // Such an error does not bubble.
  addEventListener("error", ({ target }) => isFile(target) && reload(), { capture: true });
  addEventListener("unreachable", reload);
}
