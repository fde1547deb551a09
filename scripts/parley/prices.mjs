/** What usage costs, where the price of its model is known: pure. The command line and the console share it. */
import { LANGUAGE_MODELS } from '../costs/language-models.mjs'

/**
 * Dollars a million tokens, in and out.
 * @typedef {{ in: number, out: number }} Price
 */

/**
 * A row of `GET /usage`.
 * @typedef {object} UsageRow
 * @property {string} day
 * @property {string} key
 * @property {string} conversation_model_id
 * @property {number} turns
 * @property {number} input_tokens
 * @property {number} output_tokens
 */

/** @typedef {UsageRow & { model_name: string, dollars?: number }} PricedRow */

/**
 * @param {string} name of a language model
 * @param {Record<string, Price>} [given] prices by model name, before those that are known
 * @returns {Price | undefined}
 */
export function priceOf(name, given = {}) {
  if (given[name]) return given[name]
  if (name.startsWith('local/')) return { in: 0, out: 0 }
  const found = Object.entries(LANGUAGE_MODELS).find(([model]) => name.endsWith(`/${model}`))
  return found?.[1]
}

/**
 * @param {UsageRow[]} rows
 * @param {{ id: string, model_name: string }[]} models conversation models
 * @param {Record<string, Price>} [given] prices by model name or by id of a conversation model
 * @returns {{ rows: PricedRow[], dollars: number, unpriced: string[] }} `dollars` of the models whose price is known
 */
export function priced(rows, models, given = {}) {
  const names = new Map(models.map(({ id, model_name }) => [id, model_name]))
  const unpriced = new Set()
  let dollars = 0
  const withMoney = rows.map((row) => {
    const name = names.get(row.conversation_model_id) ?? row.conversation_model_id
    const price = given[row.conversation_model_id] ?? priceOf(name, given)
    if (!price) {
      unpriced.add(name)
      return { ...row, model_name: name }
    }
    const cost = (row.input_tokens * price.in + row.output_tokens * price.out) / 1e6
    dollars += cost
    return { ...row, model_name: name, dollars: cost }
  })
  return { rows: withMoney, dollars, unpriced: [...unpriced] }
}
