/** `parley trace`: how an answer came about, as a tree to read. */
import { EXIT, Failure } from '../server.mjs'

const LONGEST_LINE = 100

/** @param {string} text */
const line = (text) => {
  const flat = text.replace(/\s+/g, ' ').trim()
  return flat.length > LONGEST_LINE ? `${flat.slice(0, LONGEST_LINE - 1)}…` : flat
}

/**
 * @param {import('../server.mjs').Server} server
 * @param {string} id of the conversation
 * @param {{ turn?: number }} options
 * @returns {Promise<any>} the traces as the server has them
 * @throws Failure
 */
export async function traceOf(server, id, { turn }) {
  const query = turn === undefined ? '' : `?turn=${turn}`
  const trace = await server.find(`/conversations/${encodeURIComponent(id)}/trace${query}`)
  if (!trace) throw new Failure(EXIT.rejected, `There is no conversation ${id}, or no trace of it is kept.`)
  return trace
}

/**
 * A trace as lines.
 * @param {{ turns: any[] }} trace
 * @param {{ prompt: boolean }} options whether to show prompts whole
 * @returns {string[]}
 */
export const traceLines = ({ turns }, options) => turns.flatMap((turn) => turnLines(turn, options))

/** @param {any} turn @param {{ prompt: boolean }} options @returns {string[]} */
function turnLines({ turn, question, trace, timings = {}, usage = {} }, { prompt }) {
  const { standalone, searches, calls } = trace
  const lines = [`Turn ${turn}: ${line(trace.question || question)}`]
  if (trace.shortened && searches.length + calls.length === 0)
    lines.push('├─ its searches and calls are not kept any more (TRACE_HOURS)')
  if (standalone !== undefined) lines.push(`├─ rewritten: ${line(standalone)}`)
  for (const { collection, params, found, hits = [], error, started, took } of searches) {
    lines.push(
      `├─ search ${collection ?? ''} "${line(params.q ?? '')}": ${error ? error.message : `${found} found`} (${started}+${took} ms)`,
    )
    for (const { id, text_match, vector_distance, score } of hits) {
      const figures = [
        score !== undefined && `score ${score.toFixed(3)}`,
        vector_distance !== undefined && `distance ${vector_distance.toFixed(3)}`,
        text_match !== undefined && `words ${text_match}`,
      ]
      lines.push(`│    ${id}  ${figures.filter(Boolean).join(', ')}`)
    }
  }
  for (const call of calls) {
    const {
      purpose,
      model,
      input_tokens: input,
      output_tokens: output,
      started,
      took,
      error,
      failed = [],
      text,
    } = call
    for (const attempt of failed)
      lines.push(`├─ ${purpose} by ${attempt.model} failed: ${line(attempt.error)}`)
    lines.push(
      `├─ ${purpose} by ${model}: ${input} tokens in, ${output} out (${started}+${took} ms)${error ? `: ${line(error)}` : ''}`,
    )
    if (text !== undefined) lines.push(`│    ${line(text)}`)
    for (const { role, content } of call.prompt) {
      if (!prompt) lines.push(`│    ${role}: ${line(content)}`)
      else
        lines.push(
          `│    ${role}:`,
          ...content.split('\n').map((/** @type {string} */ each) => `│      ${each}`),
        )
    }
  }
  const moments = Object.entries(timings).map(([name, ms]) => `${name.replace('_', ' ')} ${ms} ms`)
  lines.push(`└─ ${[usage.model, ...moments].filter(Boolean).join(', ')}`)
  return lines
}
