/** `parley eval`: a set of questions asked, and what came of it in figures. */
import { readFile } from 'node:fs/promises'
import { f1, isDeclined, mean, ndcgAt, recallAt } from '../eval/metrics.mjs'
import { EXIT, Failure } from '../failure.mjs'
import { progress } from '../progress.mjs'
import { ask } from './ask.mjs'

/**
 * A line of a question set.
 * @typedef {object} Question
 * @property {string} question
 * @property {string[]} [relevant] ids of the documents that answer it
 * @property {string} [answer] a good answer
 * @property {boolean} [unanswerable] whether no document answers it, and it should be declined
 */

/**
 * @typedef {object} Outcome
 * @property {string} question
 * @property {string} answer
 * @property {string[]} found ids, best first
 * @property {string[]} cited
 * @property {boolean} declined
 * @property {boolean} unanswerable
 * @property {number} [recall_5]
 * @property {number} [recall_10]
 * @property {number} [ndcg_5]
 * @property {number} [ndcg_10]
 * @property {number} [f1]
 * @property {boolean} [cited_right] whether a relevant document is cited
 * @property {number} ms
 * @property {string} [error]
 */

/**
 * @param {string} file lines of JSON
 * @returns {Promise<Question[]>}
 * @throws Failure that names the line
 */
export async function readQuestions(file) {
  const text = await readFile(file, 'utf8').catch(() => {
    throw new Failure(EXIT.usage, `${file} cannot be read.`)
  })
  return text.split('\n').flatMap((line, at) => {
    if (line.trim() === '') return []
    try {
      const question = JSON.parse(line)
      if (typeof question.question !== 'string') throw new Error('it has no `question`')
      return [question]
    } catch (error) {
      throw new Failure(EXIT.usage, `${file}, line ${at + 1}: ${/** @type {Error} */ (error).message}`)
    }
  })
}

/**
 * Asks every question, one after another, each in a conversation of its own.
 * @param {import('../server.mjs').Server} server
 * @param {Question[]} questions
 * @param {{ assistant?: string, collection?: string, model?: string, json: boolean }} options
 * @returns {Promise<Outcome[]>}
 */
export async function evaluate(server, questions, options) {
  const bar = progress('Asking', questions.length, 'questions', options.json)
  /** @type {Outcome[]} */
  const outcomes = []
  for (const each of questions) {
    const began = performance.now()
    const asked = await ask(server, each.question, options).catch((error) => {
      if (error instanceof Failure && error.code === EXIT.rejected) return error
      throw error
    })
    outcomes.push(outcomeOf(each, asked, Math.round(performance.now() - began)))
    bar.to(outcomes.length)
  }
  bar.stop()
  return outcomes
}

/**
 * @param {Question} asked
 * @param {Record<string, any> | Failure} turn
 * @param {number} ms
 * @returns {Outcome}
 */
function outcomeOf({ question, relevant = [], answer: expected, unanswerable = false }, turn, ms) {
  const none = { question, answer: '', found: [], cited: [], declined: false, unanswerable, ms }
  if (turn instanceof Failure) return { ...none, error: turn.message }
  const { answer, citations, finish_reason, replies = [] } = /** @type {any} */ (turn)
  const found = replies.flatMap((/** @type {any} */ { result }) =>
    (result?.hits ?? []).map((/** @type {any} */ hit) => hit.document.id),
  )
  const cited = [...new Set(citations.map((/** @type {any} */ citation) => citation.document_id))].map(String)
  const ids = new Set(relevant)
  return {
    ...none,
    answer,
    found,
    cited,
    declined: isDeclined({ answer, citations, finish_reason }),
    ...(ids.size > 0 && {
      recall_5: recallAt(found, ids, 5),
      recall_10: recallAt(found, ids, 10),
      ndcg_5: ndcgAt(found, ids, 5),
      ndcg_10: ndcgAt(found, ids, 10),
      cited_right: cited.some((id) => ids.has(id)),
    }),
    ...(expected !== undefined && { f1: f1(answer, expected) }),
  }
}

/**
 * The figures of a run. A figure that nothing was said about is left out.
 * @param {Outcome[]} outcomes
 * @returns {Record<string, number>}
 */
export function summaryOf(outcomes) {
  const answerable = outcomes.filter(({ unanswerable }) => !unanswerable)
  const unanswerable = outcomes.filter((outcome) => outcome.unanswerable)
  /** @param {keyof Outcome} name */
  const meanOf = (name) =>
    mean(answerable.flatMap((each) => (each[name] === undefined ? [] : [Number(each[name])])))
  /** @param {Outcome[]} among */
  const declined = (among) => mean(among.map((each) => Number(each.declined)))
  const figures = {
    questions: outcomes.length,
    errors: outcomes.filter(({ error }) => error !== undefined).length,
    recall_5: meanOf('recall_5'),
    recall_10: meanOf('recall_10'),
    ndcg_5: meanOf('ndcg_5'),
    ndcg_10: meanOf('ndcg_10'),
    citations_matched: meanOf('cited_right'),
    f1: meanOf('f1'),
    declined_answerable: declined(answerable),
    declined_unanswerable: declined(unanswerable),
    ms: mean(outcomes.map(({ ms }) => ms)),
  }
  return Object.fromEntries(
    Object.entries(figures).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
}

/**
 * Two runs side by side: the figures, and the questions that changed.
 * @param {Outcome[]} before
 * @param {Outcome[]} after
 * @returns {string[]}
 */
export function comparison(before, after) {
  const [old, now] = [summaryOf(before), summaryOf(after)]
  const lines = [`${''.padEnd(24)}${'before'.padStart(9)}${'now'.padStart(9)}`]
  for (const name of new Set([...Object.keys(old), ...Object.keys(now)])) {
    lines.push(
      `${name.padEnd(24)}${figure(name, old[name]).padStart(9)}${figure(name, now[name]).padStart(9)}`,
    )
  }
  const earlier = new Map(before.map((each) => [each.question, each]))
  for (const each of after) {
    const past = earlier.get(each.question)
    const changes = past ? changesOf(past, each) : []
    if (changes.length > 0) lines.push('', each.question, ...changes.map((change) => `  ${change}`))
  }
  return lines
}

/** @param {Outcome} past @param {Outcome} each @returns {string[]} */
function changesOf(past, each) {
  const changes = []
  if (past.declined !== each.declined) changes.push(each.declined ? 'declined now' : 'answered now')
  if (past.cited_right !== each.cited_right)
    changes.push(each.cited_right ? 'cites the right document now' : 'no longer cites the right document')
  if ((past.ndcg_10 ?? 0) !== (each.ndcg_10 ?? 0))
    changes.push(`nDCG@10 ${figure('', past.ndcg_10)} -> ${figure('', each.ndcg_10)}`)
  if (past.f1 !== undefined && each.f1 !== undefined && Math.abs(past.f1 - each.f1) > 0.05)
    changes.push(`F1 ${figure('', past.f1)} -> ${figure('', each.f1)}`)
  if ((past.error ?? '') !== (each.error ?? '')) changes.push(each.error ?? 'no longer fails')
  return changes
}

/** @param {string} name @param {number | undefined} value */
const figure = (name, value) =>
  value === undefined
    ? '-'
    : /^(questions|errors|ms)$/.test(name)
      ? String(Math.round(value))
      : value.toFixed(3)

/** @param {Outcome[]} outcomes @returns {string[]} */
export const summaryLines = (outcomes) =>
  Object.entries(summaryOf(outcomes)).map(
    ([name, value]) => `${name.padEnd(24)}${figure(name, value).padStart(9)}`,
  )
