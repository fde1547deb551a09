/** Sets of questions and what came of them: pure. The command line and the console share it. */
import { f1, isDeclined, mean, ndcgAt, recallAt } from './metrics.mjs'

/**
 * A line of a question set.
 * @typedef {object} Question
 * @property {string} question
 * @property {string[]} [relevant] ids of the documents that answer it, or of the pages that these are passages of
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
 * @property {boolean} [warned] whether the answer says of itself that it may be none
 * @property {boolean} unanswerable
 * @property {number} [rank] of the first relevant document; 0: none was found
 * @property {number} [recall_5]
 * @property {number} [recall_10]
 * @property {number} [ndcg_5]
 * @property {number} [ndcg_10]
 * @property {number} [f1]
 * @property {boolean} [cited_right] whether a relevant document is cited
 * @property {number} ms
 * @property {string} [conversation_id]
 * @property {number} [turn]
 * @property {string} [error]
 */

/**
 * An answered question: what `POST /conversations` answers, as JSON or put together from its events.
 * @typedef {object} AnsweredTurn
 * @property {string} answer
 * @property {{ document_id: string }[]} citations
 * @property {string} [finish_reason]
 * @property {boolean} [declined] what the built-in answerer says of its answer
 * @property {boolean} [warned]
 * @property {{ result?: { hits?: { document: { id: string } }[] } }[]} [replies] of each search
 * @property {{ hits?: { document: { id: string } }[] }[]} [results] the same, as JSON has them
 * @property {string} [conversation_id]
 * @property {number} [turn]
 */

/**
 * Reads a question set: a JSON object on each line.
 * @param {string} text
 * @returns {Question[]}
 * @throws Error that names the line
 */
export function parseQuestions(text) {
  return text.split('\n').flatMap((line, at) => {
    if (line.trim() === '') return []
    try {
      const question = JSON.parse(line)
      if (typeof question?.question !== 'string') throw new Error('it has no `question`')
      const { relevant } = question
      if (
        relevant !== undefined &&
        !(Array.isArray(relevant) && relevant.every((id) => typeof id === 'string'))
      )
        throw new Error('`relevant` is no list of ids')
      return [question]
    } catch (error) {
      throw new Error(`line ${at + 1}: ${/** @type {Error} */ (error).message}`)
    }
  })
}

/**
 * @param {Question} asked
 * @param {AnsweredTurn | { error: string }} turn
 * @param {number} ms
 * @returns {Outcome}
 */
export function outcomeOf({ question, relevant = [], answer: expected, unanswerable = false }, turn, ms) {
  const none = { question, answer: '', found: [], cited: [], declined: false, unanswerable, ms }
  if ('error' in turn) return { ...none, error: turn.error }
  const { answer, citations, finish_reason, conversation_id, turn: number, warned } = turn
  const results = turn.results ?? turn.replies?.map(({ result }) => result ?? {}) ?? []
  const found = results.flatMap(({ hits = [] }) => hits.map(({ document }) => document.id))
  const cited = [...new Set(citations.map(({ document_id }) => document_id))].map(String)
  const ids = new Set(relevant)
  // An import's passage has its page's id, and behind it its own place.
  const expectedId = (/** @type {string} */ id) =>
    ids.has(id) ? id : (relevant.find((page) => id.startsWith(`${page}~`)) ?? id)
  const ranked = found.map(expectedId)
  return {
    ...none,
    answer,
    found,
    cited,
    declined:
      turn.declined === true ||
      (warned !== true &&
        isDeclined({ answer, citations, ...(finish_reason !== undefined && { finish_reason }) })),
    ...(warned && { warned }),
    ...(ids.size > 0 && {
      rank: ranked.findIndex((id) => ids.has(id)) + 1,
      recall_5: recallAt(ranked, ids, 5),
      recall_10: recallAt(ranked, ids, 10),
      ndcg_5: ndcgAt(ranked, ids, 5),
      ndcg_10: ndcgAt(ranked, ids, 10),
      cited_right: cited.some((id) => ids.has(expectedId(id))),
    }),
    ...(expected !== undefined && { f1: f1(answer, expected) }),
    ...(conversation_id !== undefined && { conversation_id }),
    ...(number !== undefined && { turn: number }),
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
  // Only the built-in answerer warns.
  const warned = (/** @type {Outcome[]} */ among) =>
    outcomes.some((each) => each.warned) ? mean(among.map((each) => Number(each.warned ?? false))) : undefined
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
    warned_answerable: warned(answerable),
    warned_unanswerable: warned(unanswerable),
    ms: mean(outcomes.map(({ ms }) => ms)),
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
    figures: [...new Set([...Object.keys(old), ...Object.keys(now)])].map((name) => ({
      name,
      before: old[name],
      now: now[name],
    })),
    questions: after.map((each) => {
      const past = earlier.get(each.question)
      return { question: each.question, before: past, now: each, changes: past ? changesOf(past, each) : [] }
    }),
  }
}

/** @param {Outcome} past @param {Outcome} each @returns {string[]} what changed, in words */
function changesOf(past, each) {
  const changes = []
  if (past.declined !== each.declined) changes.push(each.declined ? 'declined now' : 'answered now')
  if ((past.warned ?? false) !== (each.warned ?? false))
    changes.push(each.warned ? 'with a warning now' : 'without a warning now')
  if (past.cited_right !== each.cited_right)
    changes.push(each.cited_right ? 'cites the right document now' : 'no longer cites the right document')
  if ((past.ndcg_10 ?? 0) !== (each.ndcg_10 ?? 0))
    changes.push(`nDCG@10 ${figure('', past.ndcg_10)} -> ${figure('', each.ndcg_10)}`)
  if (past.f1 !== undefined && each.f1 !== undefined && Math.abs(past.f1 - each.f1) > 0.05)
    changes.push(`F1 ${figure('', past.f1)} -> ${figure('', each.f1)}`)
  if ((past.error ?? '') !== (each.error ?? '')) changes.push(each.error ?? 'no longer fails')
  return changes
}

/**
 * A figure of a summary as text.
 * @param {string} name
 * @param {number | undefined} value
 */
export const figure = (name, value) =>
  value === undefined
    ? '-'
    : /^(questions|errors|ms)$/.test(name)
      ? String(Math.round(value))
      : value.toFixed(3)
