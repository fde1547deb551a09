/** `parley usage`: turns, tokens and money by day and model. */
import { LANGUAGE_MODELS } from '../../costs/model.mjs'
import { EXIT, Failure } from '../failure.mjs'

/**
 * Dollars a million tokens, in and out.
 * @typedef {{ in: number, out: number }} Price
 */

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
 * @returns {Promise<{ rows: any[], dollars: number, unpriced: string[] }>} `dollars` of the models whose price is known
 * @throws Failure
 */
export async function usage(server, { from, to, price }) {
  const query = new URLSearchParams({ ...(from !== undefined && { from }), ...(to !== undefined && { to }) })
  const { usage: rows } = await server.call('GET', `/usage?${query}`)
  const models = await server.call('GET', '/conversations/models')
  const names = new Map(models.map((/** @type {any} */ { id, model_name }) => [id, model_name]))
  const unpriced = new Set()
  let dollars = 0
  const priced = rows.map((/** @type {any} */ row) => {
    const name = names.get(row.conversation_model_id) ?? row.conversation_model_id
    const tariff = price[name] ?? price[row.conversation_model_id] ?? knownPrice(name)
    if (!tariff) {
      unpriced.add(name)
      return { ...row, model_name: name }
    }
    const cost = (row.input_tokens * tariff.in + row.output_tokens * tariff.out) / 1e6
    dollars += cost
    return { ...row, model_name: name, dollars: cost }
  })
  return { rows: priced, dollars, unpriced: [...unpriced] }
}

/** @param {string} name @returns {Price | undefined} */
function knownPrice(name) {
  if (name.startsWith('local/')) return { in: 0, out: 0 }
  const found = Object.entries(LANGUAGE_MODELS).find(([model]) => name.endsWith(`/${model}`))
  return found?.[1]
}

/** @param {Awaited<ReturnType<typeof usage>>} found @returns {string[]} */
export function usageLines({ rows, dollars, unpriced }) {
  if (rows.length === 0) return ['Nothing was asked in these days.']
  const lines = [['day', 'key', 'model', 'turns', 'tokens in', 'tokens out', '$']]
  for (const row of rows) {
    const money = row.dollars === undefined ? '?' : row.dollars.toFixed(4)
    lines.push(
      [row.day, row.key, row.model_name, row.turns, row.input_tokens, row.output_tokens, money].map(String),
    )
  }
  const widths = lines[0]?.map((_, at) => Math.max(...lines.map((line) => line[at]?.length ?? 0))) ?? []
  const table = lines.map((line) =>
    line
      .map((cell, at) => (at < 3 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)))
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
