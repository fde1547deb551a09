/** `parley usage`: turns, tokens and money by day and model. */

import { priced } from '../prices.mjs'
import { EXIT, Failure } from '../server.mjs'

/** @typedef {import('../prices.mjs').Price} Price */

/**
 * @param {string[]} given `MODEL=IN,OUT`
 * @returns {Record<string, Price>}
 * @throws Failure
 */
export function pricesFrom(given) {
  return Object.fromEntries(
    given.map((each) => {
      const [, model, input, output] = /^(.+)=(\d+(?:\.\d+)?),(\d+(?:\.\d+)?)$/.exec(each) ?? []
      if (model === undefined)
        throw new Failure(
          EXIT.usage,
          `--price takes MODEL=IN,OUT in dollars a million tokens, not "${each}".`,
        )
      return [model, { in: Number(input), out: Number(output) }]
    }),
  )
}

/**
 * @param {import('../server.mjs').Server} server
 * @param {{ from?: string, to?: string, price: Record<string, Price> }} options
 * @returns {Promise<ReturnType<typeof priced>>}
 * @throws Failure
 */
export async function usage(server, { from, to, price }) {
  const query = new URLSearchParams({ ...(from !== undefined && { from }), ...(to !== undefined && { to }) })
  const { usage: rows } = await server.call('GET', `/usage?${query}`)
  const models = await server.call('GET', '/conversations/models')
  return priced(rows, models, price)
}

/** @param {Awaited<ReturnType<typeof usage>>} found @returns {string[]} */
export function usageLines({ rows, dollars, unpriced }) {
  if (rows.length === 0) return ['Nothing was asked in these days.']
  const lines = [['day', 'key', 'model', 'answers with', 'turns', 'tokens in', 'tokens out', '$']]
  for (const row of rows) {
    const money = row.dollars === undefined ? '?' : row.dollars.toFixed(4)
    const { day, key, conversation_model_id: id, model_name: name, turns } = row
    lines.push([day, key, id, name, turns, row.input_tokens, row.output_tokens, money].map(String))
  }
  const widths = lines[0]?.map((_, at) => Math.max(...lines.map((line) => line[at]?.length ?? 0))) ?? []
  const table = lines.map((line) =>
    line
      .map((cell, at) => (at < 4 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)))
      .join('  '),
  )
  return [
    ...table,
    `Together $${dollars.toFixed(4)}.`,
    ...(unpriced.length > 0
      ? [`No price is known of ${unpriced.join(', ')}: name it with --price MODEL=IN,OUT.`]
      : []),
  ]
}
