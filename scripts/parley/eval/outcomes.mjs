/** Sets of questions and what came of them: pure. The command line and the console share it. */
import { priceOf } from '../prices.mjs'
import { isDeclined, mean, saidOf } from './metrics.mjs'

/**
 * A line of a question set. One that names neither a document nor words is asked, and not judged.
 * @typedef {object} Question
 * @property {string} question
 * @property {string[]} [relevant] ids of the documents that answer it, or of the pages that these are passages of
 * @property {string | string[]} [answer] words that a good answer says, or several such answers
 * @property {boolean} [unanswerable] whether no document answers it, and it should be declined
 */

/**
 * @typedef {object} Outcome
 * @property {string} question
 * @property {string} answer
 * @property {string[]} found ids, best first
 * @property {string[]} cited
 * @property {boolean} declined
 * @property {boolean} [warned] whether the answer says of itself that it may be none
 * @property {boolean} unanswerable
 * @property {number} [rank] of the first relevant document; 0: none was found
 * @property {number} [said] the share of the expected words that the answer says
 * @property {boolean} [cited_right] whether a relevant document is cited
 * @property {number} [tokens] in and out
 * @property {number} [dollars] absent: the price of its model is not known
 * @property {number} ms
 * @property {string} [conversation_id]
 * @property {number} [turn]
 * @property {string} [error]
 */

/**
 * What became of a question. `answered`: the set does not say what is right.
 * @typedef {'right' | 'partly' | 'wrong' | 'declined rightly' | 'declined wrongly' | 'answered' | 'failed'} Verdict
 */

/**
 * An answered question: what `POST /conversations` answers, as JSON or put together from its events.
 * @typedef {object} AnsweredTurn
 * @property {string} answer
 * @property {{ document_id: string }[]} citations
 * @property {string} [finish_reason]
 * @property {boolean} [declined] what the built-in answerer says of its answer
 * @property {boolean} [warned]
 * @property {{ model: string, input_tokens?: number, output_tokens?: number }} [usage]
 * @property {{ result?: { hits?: { document: { id: string } }[] } }[]} [replies] of each search
 * @property {{ hits?: { document: { id: string } }[] }[]} [results] the same, as JSON has them
 * @property {string} [conversation_id]
 * @property {number} [turn]
 */

/**
 * Reads a question set. A line is a JSON object, or text: the question, behind `=>` the expected words (several answers with `|`
 * between; none: it should be declined), and behind ` @ ` the ids of documents, with commas between. `#` begins a comment.
 * @param {string} text
 * @returns {Question[]}
 * @throws Error that names the line
 */
export function parseQuestions(text) {
  return text.split('\n').flatMap((whole, at) => {
    const line = whole.trim()
    if (line === '' || line.startsWith('#')) return []
    try {
      return [line.startsWith('{') ? fromJson(line) : fromText(line)]
    } catch (error) {
      throw new Error(`line ${at + 1}: ${/** @type {Error} */ (error).message}`)
    }
  })
}

const isTexts = (/** @type {unknown} */ value) =>
  Array.isArray(value) && value.every((each) => typeof each === 'string' && each.trim() !== '')

/** @param {string} line @returns {Question} @throws Error */
function fromJson(line) {
  const question = JSON.parse(line)
  if (typeof question.question !== 'string') throw new Error('it has no `question`')
  const { relevant, answer } = question
  if (relevant !== undefined && !isTexts(relevant)) throw new Error('`relevant` is no list of ids')
  if (answer !== undefined && !isTexts([answer].flat()))
    throw new Error('`answer` is neither a text nor a list of texts')
  return question
}

/** @param {string} line @returns {Question} @throws Error */
function fromText(line) {
  const [before = '', ids] = parted(line, line.lastIndexOf(' @ '), 3)
  const [question = '', words] = parted(before, before.indexOf('=>'), 2)
  if (!/\p{L}/u.test(question)) throw new Error('it has no question')
  const answer = words
    ?.split('|')
    .map((each) => each.trim())
    .filter(Boolean)
  return {
    question,
    ...(ids && { relevant: ids.split(',').map((id) => id.trim()) }),
    ...(answer && (answer.length > 0 ? { answer } : { unanswerable: true })),
  }
}

/** @param {string} text @param {number} at -1: nowhere @param {number} length */
const parted = (text, at, length) =>
  at < 0 ? [text] : [text.slice(0, at).trim(), text.slice(at + length).trim()]

/** Each of several lists in turn: the first ones, then the second ones. Each id once. @param {string[][]} lists */
function inTurn(lists) {
  const longest = Math.max(0, ...lists.map(({ length }) => length))
  const places = Array.from({ length: longest }, (_, rank) =>
    lists.flatMap((list) => list.slice(rank, rank + 1)),
  )
  return [...new Set(places.flat())]
}

/**
 * @param {Question} asked
 * @param {AnsweredTurn | { error: string }} turn
 * @param {number} ms
 * @param {Record<string, import('../prices.mjs').Price>} [prices] by the name of a model
 * @returns {Outcome}
 */
export function outcomeOf(asked, turn, ms, prices) {
  const { question, relevant = [], answer: expected, unanswerable = false } = asked
  const none = { question, answer: '', found: [], cited: [], declined: false, unanswerable, ms }
  if ('error' in turn) return { ...none, error: turn.error }
  const { answer, citations, conversation_id, turn: number, warned, usage } = turn
  const results = turn.results ?? turn.replies?.map(({ result }) => result ?? {}) ?? []
  const found = inTurn(results.map(({ hits = [] }) => hits.map(({ document }) => document.id)))
  const cited = [...new Set(citations.map(({ document_id }) => document_id))].map(String)
  // An import's passage has its page's id, and behind it its own place.
  const isRight = (/** @type {string} */ id) =>
    relevant.some((page) => id === page || id.startsWith(`${page}~`))
  const { input_tokens: input = 0, output_tokens: output = 0 } = usage ?? {}
  const price = usage && priceOf(usage.model, prices)
  return {
    ...none,
    answer,
    found,
    cited,
    declined: turn.declined === true || (warned !== true && isDeclined({ answer, citations })),
    ...(warned && { warned }),
    ...(relevant.length > 0 && {
      rank: found.findIndex(isRight) + 1,
      cited_right: cited.some(isRight),
    }),
    ...(expected !== undefined && {
      said: Math.max(0, ...[expected].flat().map((words) => saidOf(answer, words))),
    }),
    ...(usage && { tokens: input + output }),
    ...(price && { dollars: (input * price.in + output * price.out) / 1e6 }),
    ...(conversation_id !== undefined && { conversation_id }),
    ...(number !== undefined && { turn: number }),
  }
}

/** Shares of the expected words that an answer says if it is right, and if it is right in part. */
const SAID = { right: 0.75, partly: 0.5 }

/**
 * An answer is right if it says the expected words and cites an expected document, of what is expected; partly with one of both.
 * Where only a document is expected, it is partly right if that one was found and another is cited.
 * @param {Outcome} outcome
 * @returns {Verdict}
 */
export function verdictOf({ error, declined, unanswerable, said, rank, cited_right: cites }) {
  if (error !== undefined) return 'failed'
  if (declined) return unanswerable ? 'declined rightly' : 'declined wrongly'
  if (unanswerable) return 'wrong'
  if (said === undefined && cites === undefined) return 'answered'
  if ((said ?? 1) >= SAID.right && cites !== false) return 'right'
  const isNear = said === undefined ? (rank ?? 0) > 0 : cites === true || said >= SAID.partly
  return isNear ? 'partly' : 'wrong'
}

/** What figures are called, in the order in which they are shown. */
const FIGURES = {
  questions: 'Questions',
  right: 'Right',
  partly: 'Partly right',
  wrong: 'Wrong',
  declined_rightly: 'Declined rightly',
  declined_wrongly: 'Declined wrongly',
  answered: 'Answered, not judged',
  failed: 'Failed',
  right_warned: 'Right, with a warning',
  wrong_warned: 'Wrong, with a warning',
  first: 'Right passage is the first',
  first_3: 'Among the first three',
  found: 'Found at all',
  tokens: 'Tokens',
  dollars: 'Cost',
  ms: 'Time of an answer, median',
  slowest_ms: 'The slowest',
}

/** @param {string} name of a figure */
export const figureName = (name) => FIGURES[/** @type {keyof typeof FIGURES} */ (name)] ?? name

/** @param {number[]} values */
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1]

/** @param {number[]} values */
const sum = (values) => (values.length === 0 ? undefined : values.reduce((one, other) => one + other, 0))

/**
 * The figures of a run. A figure that nothing was said about is left out.
 * @param {Outcome[]} outcomes
 * @returns {Record<string, number>}
 */
export function summaryOf(outcomes) {
  const verdicts = outcomes.map((each) => ({ verdict: verdictOf(each), isWarned: each.warned === true }))
  /** @param {Verdict} name */
  const count = (name) => verdicts.filter(({ verdict }) => verdict === name).length
  // Only the built-in answerer warns, and an assistant that asks for support.
  const warned = (/** @type {Verdict} */ name) =>
    verdicts.some(({ isWarned }) => isWarned)
      ? verdicts.filter(({ verdict, isWarned }) => isWarned && verdict === name).length
      : undefined
  const ranks = outcomes.flatMap(({ rank }) => rank ?? [])
  const within = (/** @type {number} */ most) => mean(ranks.map((rank) => Number(rank > 0 && rank <= most)))
  const times = outcomes.map(({ ms }) => ms)
  const figures = {
    questions: outcomes.length,
    right: count('right'),
    partly: count('partly'),
    wrong: count('wrong'),
    declined_rightly: count('declined rightly'),
    declined_wrongly: count('declined wrongly'),
    answered: count('answered') || undefined,
    failed: count('failed'),
    right_warned: warned('right'),
    wrong_warned: warned('wrong'),
    first: within(1),
    first_3: within(3),
    found: within(Number.POSITIVE_INFINITY),
    tokens: sum(outcomes.flatMap(({ tokens }) => tokens ?? [])),
    dollars: sum(outcomes.flatMap(({ dollars }) => dollars ?? [])),
    ms: median(times),
    slowest_ms: times.length === 0 ? undefined : Math.max(...times),
  }
  return Object.fromEntries(
    Object.entries(figures).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
}

/**
 * Two runs: their figures side by side, and the questions of both in the order of the later run.
 * @param {Outcome[]} before
 * @param {Outcome[]} after
 */
export function comparedRuns(before, after) {
  const [old, now] = [summaryOf(before), summaryOf(after)]
  const earlier = new Map(before.map((each) => [each.question, each]))
  return {
    figures: Object.keys(FIGURES)
      .filter((name) => name in old || name in now)
      .map((name) => ({ name, before: old[name], now: now[name] })),
    questions: after.map((each) => {
      const past = earlier.get(each.question)
      return { question: each.question, before: past, now: each, changes: past ? changesOf(past, each) : [] }
    }),
  }
}

/** A place among what was found, in words. @param {number} rank */
export const placeOf = (rank) => (rank > 0 ? `rank ${rank}` : 'not found')

/** @param {Outcome} past @param {Outcome} each @returns {string[]} what changed, in words */
function changesOf(past, each) {
  const changes = []
  const [before, now] = [verdictOf(past), verdictOf(each)]
  if (before !== now) changes.push(`${before} before, ${now} now`)
  if ((past.warned ?? false) !== (each.warned ?? false))
    changes.push(each.warned ? 'with a warning now' : 'without a warning now')
  if (past.cited_right !== each.cited_right)
    changes.push(each.cited_right ? 'cites the right document now' : 'no longer cites the right document')
  if (past.rank !== undefined && each.rank !== undefined && past.rank !== each.rank)
    changes.push(`the right document: ${placeOf(past.rank)} before, ${placeOf(each.rank)} now`)
  if (each.error !== undefined && past.error !== each.error) changes.push(each.error)
  return changes
}

/** Milliseconds as `84 ms` or `2.4 s`. @param {number} ms */
const duration = (ms) => (ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`)

/**
 * A figure of a summary as text.
 * @param {string} name
 * @param {number | undefined} value
 */
export function figure(name, value) {
  if (value === undefined) return '-'
  if (name.endsWith('ms')) return duration(value)
  if (name === 'dollars') return `$${value.toFixed(4)}`
  return /^(first|first_3|found)$/.test(name) ? `${Math.round(100 * value)}%` : String(value)
}
