/** Amounts that can tell how they were worked out. */

/**
 * @typedef {object} Amount
 * @property {number} value
 * @property {string} working such as `1,000 × (5 + 3 × 6)`
 */

/** @param {number} value */
export const whole = (value) => value.toLocaleString('en-US')

/** @param {number | Amount} part @returns {Amount} */
const amountOf = (part) => (typeof part === 'number' ? { value: part, working: whole(part) } : part)

/** @param {...(number | Amount)} factors @returns {Amount} */
export function times(...factors) {
  const parts = factors.map(amountOf)
  return {
    value: parts.reduce((product, { value }) => product * value, 1),
    working: parts.map(({ working }) => working).join(' × '),
  }
}

/** In brackets, so that it can be a factor. @param {...(number | Amount)} summands @returns {Amount} */
export function sum(...summands) {
  const parts = summands.map(amountOf)
  return {
    value: parts.reduce((total, { value }) => total + value, 0),
    working: `(${parts.map(({ working }) => working).join(' + ')})`,
  }
}
