/**
 * What conversations cost on Cloudflare's Workers Paid plan: assumptions, prices, and the arithmetic between, of an import and of months without a question too. The page
 * docs/costs.md shows what comes out, and a test compares the two.
 */
import { LANGUAGE_MODELS } from './language-models.mjs'

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

// Not with the imports: a Node that is too old reads no TypeScript, and a program has yet to say so.
const { PAGE_BUDGET } = await import('../../src/auth/page-budget.ts')

/**
 * Of one conversation. The rows are measured (test/costs.full.worker.test.ts holds them); the rest is a usual case.
 */
export const CONVERSATION = {
  turns: 4,
  /** searches by a turn: a follow-up is searched as it was said and as it was rewritten */
  searches: { first: 1, followUp: 2 },
  /** calls of Durable Objects by a turn: the conversation, each search, the history's reading and writing, an alarm */
  objectCalls: { first: 5, followUp: 6 },
  /** seconds that a turn keeps the conversation's object busy, which reads the answer as it is written */
  objectSeconds: 6,
  /** seconds of all other objects together: searches, the history, and alarms */
  besideSeconds: 0.5,
  /** of the Worker, which waits for the rest of the time */
  cpuMilliseconds: 10,
  /** rows that a turn writes whose answer takes those seconds: in its objects, alarms included, and in D1 */
  rowsWritten: { objects: 40, database: 21 },
  /** rows that are written when it expires */
  rowsExpired: { objects: 18, database: 5 },
  /** rows that a turn reads, of both kinds of database, beside its searches (SEARCHED) */
  rowsRead: 200,
  /** lines of the log: of the request and of the turn (docs/operating.md) */
  logLines: 2,
  /** bytes that it takes from an hour after its end on (test/conversation/kept-logs.worker.test.ts), and about what its rows in D1 take */
  kept: { object: 41_000, database: 20_000 },
  /** what an answer is made of: `max_bytes` of 12 KB and the prompt; a follow-up is rewritten from the history first */
  tokens: { question: 20, answerIn: 3_000, answerOut: 250, rewriteIn: 500, rewriteOut: 30 },
}

/**
 * What a turn took in the version of 22 November 2026 before any of it was saved (commit 778bd021). The rows are counted by
 * test/costs.full.worker.test.ts, and the calls and seconds by bench/seconds.mjs, in both versions: medians of seven conversations.
 */
export const EARLIER = {
  rowsWritten: { objects: 64, database: 25 },
  rowsExpired: { objects: 38, database: 5 },
  rowsRead: 202,
  calls: 6.25,
  seconds: { conversation: 6.52, collection: 0.31, history: 0.07 },
}

/** The same of this version. */
export const MEASURED = {
  rowsRead: 122,
  calls: 5,
  seconds: { conversation: 6.42, collection: 0.27, history: 0.04 },
}

/**
 * Rows that a search for a question reads in a collection of so many documents: those that have one of its words, most of all. A search that wakes the
 * collection's object reads a few more (test/costs.full.worker.test.ts).
 */
export const SEARCHED = { documents: 10_000, rows: 4_000, waking: 100 }

/** What wrangler.toml lets a key do at one location: so many times in so many seconds. */
export const RATES = {
  requests: { limit: 1_000, period: 10 },
  turns: { limit: 300, period: 60 },
}

/** Seconds for which the sum of what was spent is remembered (src/db/turns.ts). */
export const SPENT_REMEMBERED = 2

/** Passages that are searched. They are in Vectorize too, in case they become too many. */
export const STORED_VECTORS = 8_000
/** Up to so many vectors of these dimensions a collection searches by itself and does not ask Vectorize (docs/search.md). */
export const HELD_VECTORS = 15_420
/** A collection that is searched with Vectorize. */
export const MANY_VECTORS = 20_000
export const DIMENSIONS = 1_024

/** An object is billed as if it took all of its 128 MB. */
export const GIGABYTES = 0.128
const MILLION = 1e6

/**
 * US dollars by a million, and what the $5 of a month include: Cloudflare's price lists as of November 2026.
 * https://developers.cloudflare.com/workers/platform/pricing/
 * https://developers.cloudflare.com/durable-objects/platform/pricing/
 * https://developers.cloudflare.com/d1/platform/pricing/
 * https://developers.cloudflare.com/vectorize/platform/pricing/
 * https://developers.cloudflare.com/workers-ai/platform/pricing/
 */
export const PRICES = {
  requests: { price: 0.3, included: 10 * MILLION },
  cpu: { price: 0.02, included: 30 * MILLION },
  objectRequests: { price: 0.15, included: MILLION },
  objectSeconds: { price: 12.5, included: 400_000 },
  rowsWritten: { price: 1, included: 50 * MILLION },
  rowsRead: { price: 0.001, included: 25_000 * MILLION },
  // https://developers.cloudflare.com/workers/observability/logs/workers-logs/#pricing
  logLines: { price: 0.6, included: 20 * MILLION },
  dimensionsQueried: { price: 0.01, included: 50 * MILLION },
  dimensionsStored: { price: 0.0005, included: 10 * MILLION },
  embedding: { price: 0.012, included: 0 },
}

/**
 * @typedef {object} Line
 * @property {string} what
 * @property {string} unit
 * @property {number} amount
 * @property {string} working how the amount comes about
 * @property {number} price dollars a million, or a gigabyte
 * @property {number} cost dollars
 */

/**
 * @param {string} what
 * @param {string} unit
 * @param {Amount} amount
 * @param {number} price
 * @param {number} by how many the price is for
 * @returns {Line}
 */
export const line = (what, unit, { value, working }, price, by = MILLION) => ({
  what,
  unit,
  amount: value,
  working,
  price,
  cost: (value * price) / by,
})

/** Of a conversation. @param {{ first: number, followUp: number }} each of a turn */
const byConversation = ({ first, followUp }) => sum(first, times(CONVERSATION.turns - 1, followUp))

/** Seconds for which a turn keeps objects busy. */
export const secondsATurn = () => sum(CONVERSATION.objectSeconds, CONVERSATION.besideSeconds)

/** Rows that a turn writes, with those of its end. @param {'objects' | 'database'} kind */
export const rowsATurn = (kind) => sum(CONVERSATION.rowsWritten[kind], CONVERSATION.rowsExpired[kind])

/** Rows that the turns of a conversation read, each search as if it woke the collection. */
export const rowsReadByConversation = () =>
  sum(
    times(CONVERSATION.turns, CONVERSATION.rowsRead),
    times(byConversation(CONVERSATION.searches), sum(SEARCHED.rows, SEARCHED.waking)),
  )

/**
 * What the platform charges for a number of conversations, but for the language model; nothing taken off.
 * @param {number} conversations
 * @returns {(Line & { included: number })[]} `included` by the month, in the unit
 */
export function platformCosts(conversations) {
  const { turns, searches, objectCalls } = CONVERSATION
  const queries = times(conversations, byConversation(searches))
  /** @param {...(number | Amount)} each of a turn */
  const byTurn = (...each) => times(conversations, turns, ...each)
  /** @type {[string, string, keyof typeof PRICES, Amount][]} */
  const used = [
    ['Worker requests', '', 'requests', byTurn()],
    ['Worker CPU', 'ms', 'cpu', byTurn(CONVERSATION.cpuMilliseconds)],
    ['Durable Object requests', '', 'objectRequests', times(conversations, byConversation(objectCalls))],
    ['Durable Object duration', 'GB-s', 'objectSeconds', byTurn(secondsATurn(), GIGABYTES)],
    ['Durable Object rows written', '', 'rowsWritten', byTurn(rowsATurn('objects'))],
    ['D1 rows written', '', 'rowsWritten', byTurn(rowsATurn('database'))],
    ['Rows read', '', 'rowsRead', times(conversations, rowsReadByConversation())],
    ['Workers Logs', 'lines', 'logLines', byTurn(CONVERSATION.logLines)],
    ['Vectorize dimensions stored', '', 'dimensionsStored', times(STORED_VECTORS, DIMENSIONS)],
    ['Embedding of questions (bge-m3)', 'tokens', 'embedding', times(queries, CONVERSATION.tokens.question)],
  ]
  return used.map(([what, unit, kind, amount]) => {
    const { price, included } = PRICES[kind]
    return { ...line(what, unit, amount, price), included }
  })
}

/** What the queries of a large collection add, and its vectors. @param {number} conversations @returns {Line[]} */
export function vectorizeCosts(conversations) {
  const queries = times(conversations, byConversation(CONVERSATION.searches))
  const queried = times(sum(queries, MANY_VECTORS), DIMENSIONS)
  const stored = times(sum(MANY_VECTORS, -STORED_VECTORS), DIMENSIONS)
  return [
    line('Vectorize dimensions queried', '', queried, PRICES.dimensionsQueried.price),
    line('Vectorize dimensions stored, more', '', stored, PRICES.dimensionsStored.price),
  ]
}

/**
 * What a language model charges for a number of conversations.
 * @param {number} conversations
 * @returns {{ model: string, in: Line, out: Line, cost: number }[]} its tokens, and dollars
 */
export function modelCosts(conversations) {
  const { turns, tokens } = CONVERSATION
  /** @param {number} answer @param {number} rewrite tokens of each */
  const byAnswer = (answer, rewrite) =>
    times(conversations, sum(times(turns, answer), times(turns - 1, rewrite)))
  return Object.entries(LANGUAGE_MODELS).map(([model, price]) => {
    const sent = line(`${model}: in`, 'tokens', byAnswer(tokens.answerIn, tokens.rewriteIn), price.in)
    const received = line(`${model}: out`, 'tokens', byAnswer(tokens.answerOut, tokens.rewriteOut), price.out)
    return { model, in: sent, out: received, cost: sent.cost + received.cost }
  })
}

/**
 * How many conversations a month the plan includes before the platform charges more than its $5, embeddings and the
 * language model aside.
 * @returns {{ conversations: number, what: string }} `what` is used up first
 */
export function includedConversations() {
  const none = platformCosts(0)
  const limits = platformCosts(1).flatMap(({ what, amount, included }, index) => {
    const fixed = none[index]?.amount ?? 0
    const one = amount - fixed
    return included > fixed && one > 0 ? [{ what, conversations: Math.floor((included - fixed) / one) }] : []
  })
  return limits.reduce((least, limit) => (limit.conversations < least.conversations ? limit : least))
}

/**
 * What the holder of a key that is bound to an assistant can make of a day at one location, its budget being the default:
 * all of its tokens spent on text that the model writes, and requests without end. The budget can be overrun by the turns
 * that run when it is reached.
 * @returns {{ models: (Line & { model: string })[], platform: Line[] }}
 */
export function worstDay() {
  const { tokens, objectSeconds, cpuMilliseconds } = CONVERSATION
  const { limit, period } = RATES.turns
  const running = (limit / period) * (objectSeconds + SPENT_REMEMBERED)
  const byTurn = tokens.answerIn + tokens.answerOut + tokens.rewriteIn + tokens.rewriteOut
  const spent = sum(PAGE_BUDGET.tokens_per_day, times(running, byTurn))
  const conversations = (PAGE_BUDGET.turns_per_day + running) / CONVERSATION.turns
  const turns = platformCosts(conversations).reduce((total, { cost }) => total + cost, 0)
  const requests = times(DAY_SECONDS, RATES.requests.limit / RATES.requests.period)
  return {
    models: Object.entries(LANGUAGE_MODELS).map(([model, { out }]) => ({
      model,
      ...line(`${model}: all tokens as if it had written them`, 'tokens', spent, out),
    })),
    platform: [
      line('Worker requests', '', requests, PRICES.requests.price),
      line('Worker CPU', 'ms', times(requests, cpuMilliseconds), PRICES.cpu.price),
      line('Durable Object requests', '', times(requests, 2), PRICES.objectRequests.price),
      {
        ...line('The platform of its turns', '', sum(PAGE_BUDGET.turns_per_day, running), 0),
        price: (turns * MILLION) / (PAGE_BUDGET.turns_per_day + running),
        cost: turns,
      },
    ],
  }
}

const DAY_SECONDS = 86_400

const VALUES = { ...PRICES, objectStorage: { price: 0.2 }, databaseStorage: { price: 0.75 } }

/** Documents of 1 KB with four fields, and a vector of their text. */
export const IMPORT = {
  documents: MILLION,
  /** documents by a request; a body may have 100 MB */
  batch: 10_000,
  /** rows that a document writes (test/costs.full.worker.test.ts holds them) */
  rows: 8,
  /** rows of a vector that comes later: its place in the queue and in the queue to Vectorize, there and gone, and itself */
  vectorRows: 5,
  /** of a document's text, for the embedding model */
  tokens: 250,
  /** documents a second, embedded by Workers AI */
  speed: 200,
  /** of a request */
  cpuMilliseconds: 100,
}

/** The cron trigger, each minute of 30 days. */
const IDLE = {
  ticks: 43_200,
  cpuMilliseconds: 5,
  /** rows of D1 that a sweep without work reads */
  rowsRead: 50,
}

/**
 * Gigabytes a month, at $0.20 for objects and $0.75 for D1 past the first 5 GB of each: Cloudflare's price lists as of
 * November 2026.
 */
const STORED = { objects: 5, database: 1 }

/**
 * @param {[what: string, unit: string, kind: keyof typeof VALUES, amount: Amount][]} used
 * @returns {Line[]} `price` by a million, that of storage by one
 */
const lines = (used) =>
  used.map(([what, unit, kind, amount]) =>
    line(what, unit, amount, VALUES[kind].price, unit === 'GB' ? 1 : MILLION),
  )

/** The import of a million documents, and their first month in Vectorize. */
export function importCosts() {
  const { documents, batch, rows, vectorRows, tokens, speed, cpuMilliseconds } = IMPORT
  const requests = { value: documents / batch, working: `${whole(documents)} / ${whole(batch)}` }
  const seconds = { value: documents / speed, working: `${whole(documents)} / ${whole(speed)}` }
  return lines([
    ['Worker requests', '', 'requests', requests],
    ['Worker CPU', 'ms', 'cpu', times(requests, cpuMilliseconds)],
    ['Durable Object duration', 'GB-s', 'objectSeconds', times(seconds, GIGABYTES)],
    ['Durable Object rows written', '', 'rowsWritten', times(documents, sum(rows, vectorRows))],
    ['Embedding of the documents (bge-m3)', 'tokens', 'embedding', times(documents, tokens)],
    ['Vectorize dimensions stored', '', 'dimensionsStored', times(documents, DIMENSIONS)],
    ['Vectorize dimensions in the first query', '', 'dimensionsQueried', times(documents, DIMENSIONS)],
  ])
}

/** A month in which nobody asks. */
export function idleCosts() {
  const { ticks, cpuMilliseconds, rowsRead } = IDLE
  return lines([
    ['Worker requests', '', 'requests', times(ticks)],
    ['Worker CPU', 'ms', 'cpu', times(ticks, cpuMilliseconds)],
    ['D1 rows read', '', 'rowsRead', times(ticks, rowsRead)],
    ['Storage of objects', 'GB', 'objectStorage', times(STORED.objects)],
    ['Storage of D1', 'GB', 'databaseStorage', times(STORED.database)],
  ])
}

/** A month of a million conversations that are kept: each an object, and its turns and messages in D1. */
export function keptCosts() {
  const { object, database } = CONVERSATION.kept
  /** @param {number} bytes of one */
  const gigabytes = (bytes) => ({
    value: (MILLION * bytes) / 1e9,
    working: `${whole(MILLION)} × ${bytes / 1_000} KB`,
  })
  return lines([
    ['Storage of objects', 'GB', 'objectStorage', gigabytes(object)],
    ['Storage of D1', 'GB', 'databaseStorage', gigabytes(database)],
  ])
}
