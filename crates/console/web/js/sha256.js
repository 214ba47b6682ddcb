// @ts-check
// SHA-256 (FIPS 180-4). Browsers offer theirs on secure origins only, and the console may be served by http in a cluster.

const [K, START] = constants();

/** The first 32 bits of the fractional parts of the cube roots and square roots of primes. */
function constants() {
  /** @type {number[]} */
  const primes = [];
  for (let n = 2; primes.length < 64; n++) if (primes.every((prime) => n % prime !== 0)) primes.push(n);
  const fraction = (/** @type {number} */ root) => ((root % 1) * 2 ** 32) | 0;
  return [primes.map((prime) => fraction(Math.cbrt(prime))), primes.slice(0, 8).map((prime) => fraction(Math.sqrt(prime)))];
}

/**
 * @param {string} text
 * @returns {string} in hexadecimal digits
 */
export function sha256(text) {
  const message = new TextEncoder().encode(text);
  const padded = new DataView(new ArrayBuffer(((message.length + 72) >> 6) << 6));
  message.forEach((byte, index) => padded.setUint8(index, byte));
  padded.setUint8(message.length, 0x80);
  padded.setBigUint64(padded.byteLength - 8, BigInt(message.length) * 8n);
  const state = [...START];
  const words = new Int32Array(64);
  const turn = (/** @type {number} */ word, /** @type {number} */ by) => (word >>> by) | (word << (32 - by));
  for (let start = 0; start < padded.byteLength; start += 64) {
    for (let i = 0; i < 64; i++) {
      if (i < 16) words[i] = padded.getInt32(start + i * 4);
      else {
        const [near, far] = [words[i - 2], words[i - 15]];
        const sum1 = turn(near, 17) ^ turn(near, 19) ^ (near >>> 10);
        const sum0 = turn(far, 7) ^ turn(far, 18) ^ (far >>> 3);
        words[i] = sum1 + words[i - 7] + sum0 + words[i - 16];
      }
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let i = 0; i < 64; i++) {
      const one = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + K[i] + words[i]) | 0;
      const two = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [a, b, c, d, e, f, g, h] = [(one + two) | 0, a, b, c, (d + one) | 0, e, f, g];
    }
    [a, b, c, d, e, f, g, h].forEach((word, index) => (state[index] = (state[index] + word) | 0));
  }
  return state.map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}
