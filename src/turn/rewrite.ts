/**
 * A follow-up made to stand alone, while its raw wording is already being searched.
 *
 * The search of the raw question is a bet: when the model gives the question back unchanged its results are
 * there, and when it fails for good there is no need to wait, or to pay, for the model.
 */

import { ProviderError } from '../models/provider-error'
import { namespaceOf } from '../models/providers'
import { fitHistory } from './budget'
import type { HistoryMessage } from './events'
import type { Generated } from './generate'
import { saidIn, toChat } from './look-back'
import { familyOf, standalonePrompt } from './prompt'
import type { AskRequest } from './request'
import { allFailed, fatalError, type Retrieved, retrieve } from './retrieve'
import type { TracedPorts } from './trace'

export interface Rewritten {
  /** what to search and to answer */
  question: string
  retrieved: Retrieved[]
  /** absent when the search failed before the model had answered, or when it had nothing to say */
  generated?: Generated
}

/**
 * A rewriting that was cut off, or that is empty, leaves the question as it is.
 * @param raw what the question finds in its own wording; absent where the question before it is to help
 * @throws ApiError from the model, or when the history does not fit into the model's max_bytes
 */
export async function rewriteAndRetrieve(
  request: AskRequest,
  history: HistoryMessage[],
  raw: Promise<Retrieved[]> | undefined,
  ports: TracedPorts,
  signal: AbortSignal,
  onRewritten: (standalone: string) => void,
): Promise<Rewritten> {
  const { question, model, searches, onSearchError } = request
  const family = familyOf(model.model_name)
  const kept = fitHistory(
    history.map(toChat),
    question,
    model.max_bytes,
    family,
    namespaceOf(model.model_name),
  )
  const said = saidBefore(history, question)
  // A short question that stays as it is may still lean on the one before. It is searched beside the rewriting.
  const unchanged = raw ?? retrieve(searches, question, ports, said)
  unchanged.catch(() => {})
  const needless = new AbortController()
  const writing = ports.generate(
    {
      purpose: 'standalone',
      messages: standalonePrompt(family, kept, question),
      question,
      sources: [],
      history: kept,
      stream: false,
    },
    AbortSignal.any([signal, needless.signal]),
  )
  // Whichever loses the race may still fail; that is then nobody's concern.
  writing.catch(() => {})
  const written = writing.catch((error) => {
    if (error instanceof ProviderError && error.fault === 'empty') return undefined
    throw error
  })
  const hopeless = unchanged.then((retrieved) =>
    fatalError(retrieved, onSearchError) || allFailed(retrieved) ? retrieved : new Promise<never>(() => {}),
  )
  const first = await Promise.race([hopeless, written]).finally(() => needless.abort())
  if (Array.isArray(first)) return { question, retrieved: first }
  const standalone = first && isWhole(first) ? first.text : question
  onRewritten(standalone)
  const retrieved = await (standalone === question ? unchanged : retrieve(searches, standalone, ports, said))
  return { question: standalone, retrieved, ...(first && { generated: first }) }
}

/** What a follow-up leans on: the question before it, with the follow-up's own words. */
function saidBefore(history: HistoryMessage[], question: string): string | undefined {
  const said = saidIn(history)
  return said && `${said} ${question}`
}

/** Half a question would be searched for something else than was asked. */
const isWhole = ({ finish }: Generated): boolean => finish !== 'length' && finish !== 'content_filter'
