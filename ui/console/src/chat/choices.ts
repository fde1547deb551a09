/** What there is to ask: collections, conversation models and assistants, as far as the key may list them, and with what a conversation was asked. */

import type { InferOutput } from 'valibot'
import type * as responses from '../../../../src/api/parley/response-schemas'
import type { StoredTurn } from '../../../widget/src/wire'
import { orElse, read } from '../api'
import type { Collection } from '../collections/wire'
import { type ChatSettings, DIRECT, type OwnSearch } from './settings'
import type { SearchTrace, Summary, TurnTrace } from './wire'

export interface Model {
  id: string
  model_name: string
  history_collection: string
  turns_per_day?: number
  tokens_per_day?: number
}

export type Assistant = InferOutput<typeof responses.Assistant>

export interface Choices {
  /** undefined where the key may not list them */
  collections?: Collection[] | undefined
  models?: Model[] | undefined
  assistants?: Assistant[] | undefined
}

/** A list; undefined where the key may not have it. */
export const listed = <T>(path: string, signal?: AbortSignal): Promise<T | undefined> =>
  orElse(read<T>(path, signal), undefined, [401, 403])

export async function loadChoices(signal?: AbortSignal): Promise<Choices> {
  const [collections, models, assistants] = await Promise.all([
    listed<Collection[]>('/collections', signal),
    listed<Model[]>('/conversations/models', signal),
    listed<{ assistants: Assistant[] }>('/assistants', signal),
  ])
  const histories = new Set(models?.map(({ history_collection }) => history_collection))
  return {
    collections: collections?.filter(({ name }) => !histories.has(name)),
    models,
    assistants: assistants?.assistants,
  }
}

/** Settings with a collection and a model that are there in the place of those that are not. */
export function possible(asked: ChatSettings, { collections = [], models = [] }: Choices): ChatSettings {
  const { name } = collections.find((each) => each.name === asked.collection) ?? collections[0] ?? {}
  const { id } = models.find((each) => each.id === asked.model) ?? models[0] ?? {}
  return { ...asked, collection: name ?? asked.collection, model: id ?? asked.model }
}

// =============================================================================
// With what a stored conversation was asked, so that a follow-up goes the same way. Pure.

/** With what the open conversation is asked. */
export interface Own {
  settings: ChatSettings
  /** id of the conversation model that its history belongs to; absent where it began in this tab */
  model?: string
}

export type Stored = Pick<Summary, 'model_id' | 'protocol'> & { turns: StoredTurn[] }

/** Wires on which no assistant is asked. */
const WITHOUT_ASSISTANTS = ['typesense', 'opensearch']

/**
 * @param traced the trace of its last turn; undefined where the key may not read traces. It has no searches where the answer is
 *   a copy, and no assistant where an older version asked one
 */
export function askedWith(
  { model_id: model, protocol, turns }: Stored,
  { assistant: asked, searches: traced }: Pick<TurnTrace, 'assistant' | 'searches'> = { searches: [] },
  { assistants }: Choices,
  tab: ChatSettings,
): Own {
  const searches = searchesIn(traced, turns)
  const couldBe = (name: string) =>
    asked === undefined ? !WITHOUT_ASSISTANTS.includes(protocol) : asked === name
  const fitting =
    assistants?.filter((each) => couldBe(each.name) && each.model === model && couldAsk(each, searches)) ?? []
  // Where it is not known which of them was asked, the one that the tab asks comes first.
  const isKnown = assistants !== undefined
  if (tab.assistant !== '' && (!isKnown || fitting.some(({ name }) => name === tab.assistant)))
    return { settings: tab, model }
  const [search, ...more] = searches
  const direct: ChatSettings = {
    ...DIRECT,
    model,
    collection: search?.collection ?? tab.collection,
    followups: tab.followups,
    ...(more.length > 0
      ? { searches }
      : { filter: search?.filter_by ?? '', limit: search?.per_page ?? '', fields: fieldsOf(traced, tab) }),
  }
  const isTabs =
    asked === undefined &&
    tab.assistant === '' &&
    more.length === 0 &&
    (['model', 'collection', 'filter', 'limit', 'fields'] as const).every(
      (name) => tab[name] === direct[name],
    )
  const assistant = fitting.find(({ name }) => name === model) ?? fitting[0]
  if (isTabs || assistant === undefined) return { settings: direct, model }
  return { settings: { ...DIRECT, assistant: assistant.name, followups: tab.followups }, model }
}

/**
 * Whether an assistant may have searched this way. A filter that is not its own came with the request or its key: it must
 * not be lost, so such a conversation goes on without the assistant.
 */
function couldAsk({ collections = [], searches }: Assistant, ran: readonly OwnSearch[]): boolean {
  const own = searches ?? collections.map((collection): OwnSearch => ({ collection }))
  const ranSo = ({ collection, filter_by }: OwnSearch) =>
    own.some((each) => each.collection === collection && (filter_by ?? each.filter_by) === each.filter_by)
  const isAll = own.every(({ collection }) => ran.some((each) => each.collection === collection))
  return ran.length === 0 || (isAll && ran.every(ranSo))
}

/** Each collection once. A rewritten question is searched beside the question as asked. */
function searchesIn(traced: readonly SearchTrace[], turns: readonly StoredTurn[]): OwnSearch[] {
  const named = new Map<string, OwnSearch>()
  for (const { collection, params } of traced) {
    const { filter_by, per_page } = params
    if (collection === undefined) continue
    named.set(collection, { collection, ...(filter_by && { filter_by }), ...(per_page && { per_page }) })
  }
  if (named.size > 0) return [...named.values()]
  const cited = turns.findLast(({ citations }) => citations.length > 0)?.citations ?? []
  return [...new Set(cited.map(({ collection }) => collection))].map((collection) => ({ collection }))
}

/** The tab's fields, if they were searched. Others are not told from those that a search has by default. */
const fieldsOf = ([search]: readonly SearchTrace[], { fields }: ChatSettings): string =>
  search?.params.query_by === fields ? fields : ''

/** Whether a conversation can go on with other settings: its messages are in the history of its model. */
export function goesOnWith(own: Own, next: ChatSettings, { assistants, models }: Choices): boolean {
  const modelOf = ({ assistant, model }: ChatSettings) =>
    assistant === '' ? model : assistants?.find(({ name }) => name === assistant)?.model
  const historyOf = (model: string | undefined) => models?.find(({ id }) => id === model)?.history_collection
  const [held, wanted] = [own.model ?? modelOf(own.settings), modelOf(next)]
  if (held === undefined || wanted === undefined) return own.settings.assistant === next.assistant
  const history = historyOf(held)
  return held === wanted || (history !== undefined && history === historyOf(wanted))
}
