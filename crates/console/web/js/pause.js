// @ts-check

/**
 * @param {number} ms
 * @param {AbortSignal} signal
 * @returns {Promise<void>} rejected when the signal is aborted
 */
export function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)));
  });
}
