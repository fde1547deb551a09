/**
 * A second look: searches that the model asks for, beside the search for the question itself. Assistants with
 * `retrieval: "agentic"` take it.
 *
 * The model is called twice at most. While the question is searched, it may split it into several searches. When their passages
 * are there, it may ask once more for what they lack. A call that fails, that is late or that says nothing usable costs its time
 * and its tokens alone: the turn goes on with what was found. The model replies in lines of text, not by calls of tools
 * (docs/decisions/0025-searches-as-lines.md).
 */

import { mapFew } from '../lib/few'
import { settlesWithin } from '../lib/waiting'
import type { ChatMessage, Source } from '../models/language-model'
import { namespaceOf } from '../models/providers'
import { byRank } from '../search/merge-lists'
import { byteLength, familyOf, fitSources, promptDocument, searchesPrompt } from './prompt'
import type { AskRequest } from './request'
import { orderOf, type Retrieved, retrieve, sourcesOf } from './retrieve'
import { isWhole } from './rewrite'
import type { TracedPorts } from './trace'

/** How long the answer waits for a call and the searches that it asks for, in milliseconds. */
export const ROUND_MS = 6_000

/** Searches of one reply. */
const MOST_QUERIES = 4
/** The same, in all collections together. */
const MOST_SEARCHES = 16
/** Searches that run at once, as in retrieve.ts. */
const AT_ONCE = 4

/** UTF-16 units of a search. A longer line is prose. */
const LONGEST_QUERY = 300
/** Lines of a reply. One with more is no list of searches. */
const MOST_LINES = 8
/** UTF-16 units of a reply. A model that writes more is stopped. */
const LONGEST_REPLY = 2_000
/** Bytes of a question that may be split: a longer one is a text with a question in it. */
const LONGEST_QUESTION = 4_000
/** Bytes of passages that the second call reads. */
const CHECKED_BYTES = 8_000

/**
 * Asks the model to split the question, and searches for the parts.
 * @returns undefined if it could not be asked. Rejects only if the turn ends
 */
export async function split(
  request: AskRequest,
  question: string,
  ports: TracedPorts,
  signal: AbortSignal,
): Promise<Retrieved[] | undefined> {
  const isModel = namespaceOf(request.model.model_name) !== 'local' || (await ports.hasRewriter())
  if (!isModel || byteLength(question) > LONGEST_QUESTION) return undefined
  return round(request, searchesPrompt(question), [question], ports, signal)
}

/**
 * Has the model read what was found, and searches for what is missing.
 * @param plain what the search for the question found
 * @param parts what the searches of `split` found
 * @returns what all further searches found, the last ones first. Rejects only if the turn ends
 */
export async function lookAgain(
  request: AskRequest,
  question: string,
  { plain, parts }: { plain: Retrieved[]; parts: Retrieved[] },
  ports: TracedPorts,
  signal: AbortSignal,
): Promise<Retrieved[]> {
  const { model, searches } = request
  const found = documentsOf(request, [...plain, ...parts])
  const bytes = Math.min(CHECKED_BYTES, model.max_bytes)
  const { sources } = fitSources(found, question, bytes, familyOf(model.model_name), orderOf(searches))
  const messages = searchesPrompt(question, sources.map(promptDocument))
  const searched = [question, ...parts.map(({ summary }) => summary.q!)]
  const missing = (await round(request, messages, searched, ports, signal)) ?? []
  const marked = missing.map((each) => ({ ...each, summary: { ...each.summary, again: true as const } }))
  return [...marked, ...parts]
}

/**
 * The documents of each search. Where there are further ones, it is one list with each document once: the question's own search has
 * every other place, the further ones share the rest in turn, and there are as many as that search may find alone.
 */
export function documentsOf({ searches, labels }: AskRequest, retrieved: Retrieved[]): Source[][] {
  const lists = sourcesOf(retrieved, labels)
  if (retrieved.length <= searches.length) return lists
  const own = lists.slice(0, searches.length)
  const further = byRank(lists.slice(searches.length))
  const most = retrieved
    .slice(0, searches.length)
    .reduce((sum, { summary: { limit = 0 }, documents }) => sum + Math.max(limit, documents.length), 0)
  const seen = new Set<string>()
  const each = byRank([orderOf(searches)(own), further]).filter(({ collection, document }) => {
    const name = JSON.stringify([collection, document.id ?? document])
    const isNew = !seen.has(name)
    seen.add(name)
    return isNew
  })
  return [each.slice(0, most)]
}

/** One call, and the searches that it asks for. @param searched what was searched before */
async function round(
  request: AskRequest,
  messages: ChatMessage[],
  searched: string[],
  ports: TracedPorts,
  signal: AbortSignal,
): Promise<Retrieved[] | undefined> {
  const over = new AbortController()
  const ending = AbortSignal.any([signal, over.signal])
  let length = 0
  const watch = (text: string) => {
    length += text.length
    if (length > LONGEST_REPLY) over.abort()
  }
  const run = async (): Promise<Retrieved[]> => {
    const reply = await ports.generate(
      { purpose: 'plan', messages, question: searched[0]!, sources: [], history: [], stream: true },
      ending,
      watch,
    )
    ending.throwIfAborted()
    return isWhole(reply) ? searchFor(request, queriesIn(reply.text, searched), ports) : []
  }
  try {
    const running = run()
    if (await settlesWithin(ROUND_MS, running)) return await running
  } catch {
    // The trace holds the error.
    signal.throwIfAborted()
  } finally {
    over.abort()
  }
  return undefined
}

async function searchFor(
  { searches }: AskRequest,
  queries: string[],
  ports: TracedPorts,
): Promise<Retrieved[]> {
  const most = Math.max(1, Math.floor(MOST_SEARCHES / Math.max(1, searches.length)))
  const pairs = queries.slice(0, most).flatMap((q) => searches.map((search) => ({ q, search })))
  const found = await mapFew(pairs, AT_ONCE, async ({ q, search }) =>
    (await retrieve([search], q, ports)).map((each) => ({ ...each, summary: { ...each.summary, q } })),
  )
  return found.flat()
}

/** What a reply asks to search for. @param searched what was searched before */
export function queriesIn(reply: string, searched: readonly string[] = []): string[] {
  const lines = reply
    .split('\n')
    .map((line) => line.trim().replace(/^(?:[-*\u2022]|\d{1,2}[.)])\s+/, ''))
    .filter((line) => line !== '')
  if (lines.length > MOST_LINES || /^\W*(?:NONE\b|[Nn]one\W*$)/.test(reply)) return []
  const known = new Set(searched.map((query) => query.toLowerCase()))
  const queries = lines.filter((line) => {
    const isNew = line.length <= LONGEST_QUERY && !known.has(line.toLowerCase())
    known.add(line.toLowerCase())
    return isNew
  })
  return queries.slice(0, MOST_QUERIES)
}
