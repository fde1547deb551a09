/**
 * Admits a question while its index's schema is read, and then embeds what it searches for: the search need not wait for an embedder
 * that nobody called. Nothing is embedded before the key, the budget and the rate were checked.
 */
import { waitUntil } from 'cloudflare:workers'
import { logFailure } from '../../errors'
import type { Call } from '../http/router'
import { requireMemory } from './memory-access'
import { pipelineOf } from './pipelines'
import type { Ahead } from './prefetch'
import { type Asking, askingOf, isRewriter } from './rag'
import { type Index, isObject, type Json } from './route'

interface Given {
  asked: Json
  /** the request's body as it came */
  text: string
  index: Promise<Index>
  /** the same with its schema. Once that is there, the search begins as soon as the question is admitted */
  opening: Promise<unknown>
}

/**
 * A question that is refused for what it says, its pipeline or its memory is not admitted here, so that it counts against no rate.
 * @returns what is asked; never rejects. undefined: it has to be found out, or refused, where it is needed
 */
export async function askAhead(
  call: Call,
  reading: Promise<Ahead>,
  given: Given,
): Promise<Asking | undefined> {
  const { asked, index, text, opening } = given
  const ahead = await reading.catch(() => undefined)
  if (!ahead?.isRead) return undefined
  let isOpen = false
  opening
    .catch(() => {})
    .finally(() => {
      isOpen = true
    })
  const { env, query } = call
  const { search_pipeline: named, ext } = asked
  try {
    const pipeline = await pipelineOf(ahead.find, query.search_pipeline, named, async () => undefined)
    if (pipeline?.rag === undefined) return undefined
    const asking = await askingOf(call, pipeline, pipeline.rag, { ext, ahead, text })
    const found = await index
    if (asking.memoryId !== undefined) {
      await requireMemory(env, ahead.find)
      if ((await (await ahead.memory)?.row) === undefined) return asking
    }
    const isRewritten = asking.memoryId !== undefined && isRewriter(pipeline, asking.generative)
    // Whoever needs the permission learns why there is none.
    asking.admit().then(
      () => !isRewritten && !isOpen && embed(call, found, asked.query),
      () => {},
    )
    return asking
  } catch {
    return undefined
  }
}

/** Asks the index to embed the first text that a query has for one of its fields, if their model has to be called. */
function embed({ access, query, record }: Call, { object, outline }: Index, asked: unknown): void {
  const { q, query_by, vector_query, preset } = access.embedded
  if ([q, query_by, vector_query, preset, query.q].some((given) => given !== undefined)) return
  const wanted = neural(asked)
  if (!wanted || !outline?.called?.includes(wanted.query_by)) return
  const embedding = object.embedAhead(wanted).catch((error) => {
    // An object of the version before does not have the method, and embeds with the search.
    if (!(error instanceof TypeError))
      logFailure('a question was not embedded ahead', error, { requestId: record.requestId })
  })
  waitUntil(embedding)
}

/** The first `neural` query in a query, as a search by its words. */
function neural(query: unknown): { q: string; query_by: string } | undefined {
  if (typeof query !== 'object' || query === null) return undefined
  for (const [key, value] of Object.entries(query)) {
    const [[field, options] = []] = key === 'neural' && isObject(value) ? Object.entries(value) : []
    if (field !== undefined && isObject(options) && typeof options.query_text === 'string')
      return { q: options.query_text, query_by: field }
    const inner = neural(value)
    if (inner) return inner
  }
  return undefined
}
