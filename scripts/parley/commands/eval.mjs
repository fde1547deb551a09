/** `parley eval`: a set of questions asked, and what came of it in figures. */
import { readFile } from 'node:fs/promises'
import {
  comparedRuns,
  figure,
  figureName,
  outcomeOf,
  parseQuestions,
  placeOf,
  summaryOf,
  verdictOf,
} from '../eval/outcomes.mjs'
import { progress } from '../progress.mjs'
import { EXIT, Failure } from '../server.mjs'
import { ask } from './ask.mjs'

export { summaryOf }

/** @typedef {import('../eval/outcomes.mjs').Question} Question */
/** @typedef {import('../eval/outcomes.mjs').Outcome} Outcome */

/**
 * @param {string} file lines of JSON or text (parseQuestions)
 * @returns {Promise<Question[]>}
 * @throws Failure that names the line
 */
export async function readQuestions(file) {
  const text = await readFile(file, 'utf8').catch(() => {
    throw new Failure(EXIT.usage, `${file} cannot be read.`)
  })
  try {
    return parseQuestions(text)
  } catch (error) {
    throw new Failure(EXIT.usage, `${file}, ${/** @type {Error} */ (error).message}`)
  }
}

/**
 * Asks every question, one after another, each in a conversation of its own.
 * @param {import('../server.mjs').Server} server
 * @param {Question[]} questions
 * @param {{ assistant?: string, collection?: string, model?: string, json: boolean, price: Record<string, import('../prices.mjs').Price> }} options
 * @returns {Promise<Outcome[]>}
 */
export async function evaluate(server, questions, options) {
  /** @type {Outcome[]} */
  const outcomes = []
  const askOne = async (/** @type {Question} */ each) => {
    const began = performance.now()
    const asked = await ask(server, each.question, { ...options, asPage: true }).catch((error) => {
      if (error instanceof Failure && error.code === EXIT.rejected) return { error: error.message }
      throw error
    })
    const turn = /** @type {import('../eval/outcomes.mjs').AnsweredTurn | { error: string }} */ (asked)
    outcomes.push(outcomeOf(each, turn, Math.round(performance.now() - began), options.price))
  }
  await progress('Asking', questions.length, 'questions', options.json, async (to) => {
    for (const each of questions) {
      await askOne(each)
      to(outcomes.length)
    }
  })
  return outcomes
}

/**
 * Two runs side by side: the figures, and the questions that changed.
 * @param {Outcome[]} before
 * @param {Outcome[]} after
 * @returns {string[]}
 */
export function comparison(before, after) {
  const { figures, questions } = comparedRuns(before, after)
  const lines = [row('', 'before', 'now')]
  for (const { name, before: old, now } of figures)
    lines.push(row(figureName(name), figure(name, old), figure(name, now)))
  for (const { question, changes } of questions) {
    if (changes.length > 0) lines.push('', question, ...changes.map((change) => `  ${change}`))
  }
  return lines
}

/** @param {string} name @param {string[]} cells */
const row = (name, ...cells) => `${name.padEnd(28)}${cells.map((cell) => cell.padStart(10)).join('')}`

/**
 * A run in words: a line for each question, and the figures.
 * @param {Outcome[]} outcomes
 * @returns {string[]}
 */
export const summaryLines = (outcomes) => [
  ...outcomes.map((each) => {
    const { question, warned, rank, tokens, dollars, ms, error } = each
    const facts = [
      warned && 'with a warning',
      rank !== undefined && placeOf(rank),
      tokens !== undefined && `${tokens} tokens`,
      dollars && figure('dollars', dollars),
      figure('ms', ms),
    ]
    return `${verdictOf(each).padEnd(18)}${question}\n${' '.repeat(18)}${error ?? facts.filter(Boolean).join(' · ')}`
  }),
  '',
  ...Object.entries(summaryOf(outcomes)).map(([name, value]) => row(figureName(name), figure(name, value))),
]
