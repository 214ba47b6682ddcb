// What a user does on a page.

/** Waits until an element has a text. */
export function shows(page, selector, text) {
  return page.waitForFunction(
    (selector, text) => [...document.querySelectorAll(selector)].some((found) => found.textContent.includes(text)),
    {},
    selector,
    text,
  );
}

/** Presses the button with this label. */
export async function press(page, label) {
  const button = await page.waitForSelector(`::-p-xpath(//main//button[normalize-space()='${label}' and not(@disabled)])`);
  await button.click();
}
