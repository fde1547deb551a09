/** The costs as docs/costs.md and the README show them. */
import { markdownTable } from 'markdown-table'
import {
  CONVERSATION,
  EARLIER,
  HELD_VECTORS,
  idleCosts,
  importCosts,
  includedConversations,
  keptCosts,
  MANY_VECTORS,
  MEASURED,
  modelCosts,
  PRICES,
  platformCosts,
  vectorizeCosts,
  worstDay,
} from './model.mjs'

const CONVERSATIONS = 1_000

/** @param {number} value */
const whole = (value) => Math.round(value).toLocaleString('en-US')

/** @param {number} value */
const dollars = (value) => `$${value < 0.0995 ? value.toFixed(4) : value.toFixed(2)}`

/** @param {number} value */
const short = (value) => (value >= 1e6 ? `${whole(value / 1e6)} M` : value === 0 ? '-' : whole(value))

/** A table of Markdown, its columns after the first to the right. @param {string[][]} rows the first is the head */
export const markdown = (rows) =>
  markdownTable(rows, { align: rows[0]?.map((_, column) => (column === 0 ? null : 'right')) })

/**
 * How an amount comes about, and what it costs.
 * @param {import('./model.mjs').Line} line
 * @param {string} [price] as it is shown
 */
const row = ({ what, unit, amount, working, price: each, cost }, price = `$${each}`) => [
  what,
  `${working === whole(amount) ? working : `${working} = ${whole(amount)}`}${unit && ` ${unit}`}`,
  price,
  dollars(cost),
]

/** @param {{ cost: number }[]} lines */
const sumOf = (lines) => lines.reduce((total, { cost }) => total + cost, 0)

/** @param {string} what @param {{ cost: number }[]} lines */
const total = (what, lines) => [what, '', '', dollars(sumOf(lines))]

/** What a thousand conversations cost, in Markdown. */
export function costsTable() {
  const lines = platformCosts(CONVERSATIONS)
  const rows = lines.map(({ what, unit, amount, price, cost, included }) => [
    what,
    `${whole(amount)}${unit && ` ${unit}`}`,
    `$${price}`,
    dollars(cost),
    short(included),
  ])
  const models = modelCosts(CONVERSATIONS)
  const included = includedConversations()
  return [
    markdown([['A thousand conversations', 'Use', 'A million', 'Cost', 'In the $5'], ...rows]),
    '',
    `That is ${dollars(sumOf(lines))} at list prices. Up to about ${whole(Math.floor(included.conversations / 100) * 100)} conversations a month, all but the embeddings is in the`,
    `plan's $5; ${included.what} are used up first. The language model costs more than all of it:`,
    '',
    markdown([
      ['Language model', 'Tokens in', 'Tokens out', 'A thousand conversations'],
      ...models.map((line) => [
        line.model,
        whole(line.in.amount),
        whole(line.out.amount),
        dollars(line.cost),
      ]),
    ]),
  ].join('\n')
}

/** What a large collection adds, in a sentence for docs/costs.md. */
export function vectorizeSentence() {
  const cost = sumOf(vectorizeCosts(CONVERSATIONS))
  return `Up to ${whole(HELD_VECTORS)} passages are searched in the collection itself. With ${whole(MANY_VECTORS)}, Vectorize is asked, for another ${dollars(cost)}.`
}

/** The same in a sentence for the README, its lines no longer than 120 characters. */
export function costsSentence() {
  const platform = sumOf(platformCosts(CONVERSATIONS))
  const models = modelCosts(CONVERSATIONS).map(({ cost }) => cost)
  return [
    `A thousand conversations of four turns cost ${dollars(platform)} of Workers, Durable Objects, D1 and Vectorize, nearly all of it`,
    `included in the plan's $5 a month, and ${dollars(Math.min(...models))} to ${dollars(Math.max(...models))} for a language model of Workers AI.`,
  ].join('\n')
}

/** The arithmetic for docs/costs.md, in Markdown: how each amount comes about, times its price. */
export function costsArithmetic() {
  const platform = platformCosts(CONVERSATIONS)
  const models = modelCosts(CONVERSATIONS)
  return markdown([
    ['A thousand conversations', 'How many', 'A million', 'Cost'],
    ...platform.map((line) => row(line)),
    total('All but the language model', platform),
    ...models.flatMap((model) => [
      row(model.in),
      row(model.out),
      total(`All with ${model.model}`, [...platform, model]),
    ]),
  ])
}

/** What a turn took before it was made cheaper, and takes now, for docs/costs.md, in Markdown. */
export function earlierTable() {
  const now = { ...CONVERSATION, ...MEASURED }
  const versions = [EARLIER, now]
  /** @param {'objects' | 'database'} kind */
  const rows = (kind) =>
    versions.map(({ rowsWritten, rowsExpired }) => {
      const all = rowsWritten[kind] + rowsExpired[kind]
      return { all, working: `${rowsWritten[kind]} + ${rowsExpired[kind]} = ${all}` }
    })
  const [objects, database] = [rows('objects'), rows('database')]
  const dollarsOfRows = versions.map((_, at) => {
    const all = (objects[at]?.all ?? 0) + (database[at]?.all ?? 0)
    const cost = (CONVERSATIONS * CONVERSATION.turns * all * PRICES.rowsWritten.price) / 1e6
    return `${whole(CONVERSATIONS)} × ${CONVERSATION.turns} × ${all} × $${PRICES.rowsWritten.price} / 1 M = ${dollars(cost)}`
  })
  const seconds = versions.map(({ seconds: { conversation, collection, history } }) => {
    const all = conversation + collection + history
    return `${conversation} + ${collection} + ${history} = ${all.toFixed(2)}`
  })
  return markdown([
    ['A turn', 'Before', 'Now'],
    ['Rows written in objects, and when it expires', ...objects.map(({ working }) => working)],
    ['Rows written in D1, and when it expires', ...database.map(({ working }) => working)],
    ['Rows read, in a collection of a few documents', ...versions.map(({ rowsRead }) => whole(rowsRead))],
    ['Calls and alarms of objects', ...versions.map(({ calls }) => `${calls}`)],
    ['Seconds of the conversation, collection, history', ...seconds],
    ['Rows written by a thousand conversations', ...dollarsOfRows],
  ])
}

/** The worst day of a key that is bound to an assistant, for docs/keys.md, in Markdown. */
export function worstDayTable() {
  const { models, platform } = worstDay()
  return markdown([
    ['The worst day of a bound key', 'How many', 'A million', 'Cost'],
    ...[...platform, ...models].map((line) => row(line, `$${Number(line.price.toPrecision(4))}`)),
    ...models.map((model) => total(`All with ${model.model}`, [...platform, model])),
  ])
}

/** @param {string} what @param {import('./model.mjs').Line[]} lines */
const listed = (what, lines) =>
  markdown([
    [what, 'How many', 'Price', 'Cost'],
    ...lines.map((line) => row(line, `$${line.price} a ${line.unit === 'GB' ? 'GB' : 'million'}`)),
    total('All', lines),
  ])

/** The import of a million documents for docs/costs.md, in Markdown. */
export const importTable = () => listed('A million documents', importCosts())

/** A month in which nobody asks for docs/costs.md, in Markdown. */
export const idleTable = () => listed('A month of idling', idleCosts())

/** A month of a million conversations that are kept for docs/costs.md, in Markdown. */
export const keptTable = () => listed('A month of a million conversations', keptCosts())
