/** `parley eval`: a set of questions asked, and what came of it in figures. */
import { readFile } from 'node:fs/promises'
import { comparedRuns, figure, outcomeOf, parseQuestions, summaryOf } from '../eval/outcomes.mjs'
import { EXIT, Failure } from '../failure.mjs'
import { progress } from '../progress.mjs'
import { ask } from './ask.mjs'

export { summaryOf }

/** @typedef {import('../eval/outcomes.mjs').Question} Question */
/** @typedef {import('../eval/outcomes.mjs').Outcome} Outcome */

/**
 * @param {string} file lines of JSON
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
      if (error instanceof Failure && error.code === EXIT.rejected) return { error: error.message }
      throw error
    })
    const turn = /** @type {import('../eval/outcomes.mjs').AnsweredTurn | { error: string }} */ (asked)
    outcomes.push(outcomeOf(each, turn, Math.round(performance.now() - began)))
    bar.to(outcomes.length)
  }
  bar.stop()
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
  const lines = [`${''.padEnd(24)}${'before'.padStart(9)}${'now'.padStart(9)}`]
  for (const { name, before: old, now } of figures) {
    lines.push(`${name.padEnd(24)}${figure(name, old).padStart(9)}${figure(name, now).padStart(9)}`)
  }
  for (const { question, changes } of questions) {
    if (changes.length > 0) lines.push('', question, ...changes.map((change) => `  ${change}`))
  }
  return lines
}

/** @param {Outcome[]} outcomes @returns {string[]} */
export const summaryLines = (outcomes) =>
  Object.entries(summaryOf(outcomes)).map(
    ([name, value]) => `${name.padEnd(24)}${figure(name, value).padStart(9)}`,
  )
