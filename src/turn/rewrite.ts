/**
 * Rewrites a follow-up to stand alone, while its raw wording is already being searched.
 *
 * Searching the raw question is a bet. If the model returns the question unchanged, the results are already
 * there. If the search fails for good, the turn need not wait for the model or pay for it.
 */

import { textOf } from '../lib/parts'
import { ProviderError } from '../models/provider-error'
import { namespaceOf } from '../models/providers'
import type { HistoryMessage } from './events'
import type { Generated } from './generate'
import { saidIn, toChat } from './look-back'
import { familyOf, fitHistory, standalonePrompt } from './prompt'
import type { AskRequest } from './request'
import { failureOf, fatalError, type Retrieved, retrieve } from './retrieve'
import type { TracedPorts } from './trace'

export interface Rewritten {
  /** the question to search and to answer */
  question: string
  retrieved: Retrieved[]
}

/**
 * If the rewritten question is cut off or empty, the question stays as it is.
 * @param raw the search of the question's own wording; absent if it also needs the question before it
 * @throws ApiError from the model, or if the history does not fit into the model's `max_bytes`
 */
export async function rewriteAndRetrieve(
  request: AskRequest,
  history: HistoryMessage[],
  raw: Promise<Retrieved[]> | undefined,
  ports: TracedPorts,
  signal: AbortSignal,
  onRewritten: (standalone: string) => void,
): Promise<Rewritten> {
  const { model, searches, onSearchError } = request
  const question = textOf(request.question)
  const family = familyOf(model.model_name)
  const kept = fitHistory(
    history.map(toChat),
    question,
    model.max_bytes,
    family,
    namespaceOf(model.model_name),
  )
  const said = saidBefore(history, question)
  // A short question that stays unchanged may still depend on the one before. Search for both while the model
  // writes.
  const unchanged = raw ?? retrieve(searches, question, ports, said)
  unchanged.catch(() => {})
  const needless = new AbortController()
  const writing = ports.generate(
    {
      purpose: 'standalone',
      messages: standalonePrompt(family, kept, question, request.assistant !== undefined),
      question,
      sources: [],
      history: kept,
      stream: false,
    },
    AbortSignal.any([signal, needless.signal]),
  )
  // The loser of the race may still reject. Nobody handles that, so swallow it.
  writing.catch(() => {})
  const written = writing.catch((error) => {
    if (error instanceof ProviderError && error.fault === 'empty') return undefined
    throw error
  })
  const hopeless = unchanged.then((retrieved) =>
    fatalError(retrieved, onSearchError) || failureOf(retrieved) ? retrieved : new Promise<never>(() => {}),
  )
  const first = await Promise.race([hopeless, written]).finally(() => needless.abort())
  if (Array.isArray(first)) return { question, retrieved: first }
  const reply = first && isWhole(first) ? first.text : question
  const standalone = request.assistant === undefined ? reply : questionIn(reply, question, said)
  onRewritten(standalone)
  const retrieved = await (standalone === question ? unchanged : retrieve(searches, standalone, ports, said))
  return { question: standalone, retrieved }
}

/** A follow-up's context: the question before it, with the follow-up's own words. */
function saidBefore(history: HistoryMessage[], question: string): string | undefined {
  const said = saidIn(history)
  return said && `${said} ${question}`
}

/** A rewritten question may be so many times as long as what it was made of, in UTF-16 units, and this much longer. */
const MOST_TIMES = 3
const MORE = 60

/**
 * The question in a model's reply. A reply that is none would search for something else than was asked: a list, an answer in
 * sentences, or much more than the question and the one before it.
 * @param context the question, behind the one before it
 */
export function questionIn(reply: string, question: string, context = question): string {
  const said = reply
    .trim()
    .replace(/^(?:<[\w /-]{1,40}>|\**(?:rewritten |standalone )?question\**:?\**)\s*/i, '')
    .replace(/^["\u201c\u201e\u00ab']([^"\u201c\u201d\u201e\u00ab\u00bb]+)["\u201d\u201c\u00bb']$/, '$1')
    .trim()
  const isLong = said.length > MOST_TIMES * context.length + MORE
  const isList = /\n/.test(said)
  const isAnswer = !/[?\uff1f\u061f]/.test(said) && /[.!\u3002\uff01]\s*\S/.test(said)
  return said === '' || isLong || isList || isAnswer ? question : said
}

/** Whether a reply was not cut off. What was would search for something else than was asked. */
export const isWhole = ({ finish }: Generated): boolean => finish !== 'length' && finish !== 'content_filter'
