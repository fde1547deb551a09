/** A world for a turn: collections, a history, a language model and a clock, all in memory. */

import { ApiError, attempt, type Outcome } from '../../src/errors'
import { contentOf, type ToolCallPart, type ToolResultPart } from '../../src/lib/parts'
import type { Delta, GenerationRequest, LanguageModel } from '../../src/models/language-model'
import type { Document, SearchParameters, SearchResult, StoredMessage } from '../../src/search/types'
import {
  type HistoryMessage,
  isForReaders,
  type LogEvent,
  type LogEventBody,
  type TurnEventBody,
} from '../../src/turn/events'
import {
  emptyTurn,
  foldBody,
  messagesOf,
  type RecordedTurn,
  recordOf,
  type TurnTrace,
  traceOf,
} from '../../src/turn/fold'
import type { AskRequest } from '../../src/turn/request'
import { runTurn } from '../../src/turn/run'
import type { Spending, TurnPorts } from '../../src/turn/trace'
import { config } from '../models/ask'
import { field } from '../search/field'

export type Speak = (request: GenerationRequest, signal: AbortSignal) => AsyncIterable<Delta> | Delta[]

export interface World {
  documents: Record<string, Document[]>
  vectorFields: string[]
  said: StoredMessage[]
  ttls: Map<string, number>
  now: number
  speak: Speak
  /** who rewrites in the model's place */
  rewriter: LanguageModel | undefined
  /** answers a search with an error */
  refuse: (objectId: string, params: SearchParameters) => ApiError | undefined
  stores: () => Promise<Outcome<void>>
  /** runs a tool of the server */
  tool: (call: ToolCallPart, signal: AbortSignal) => Promise<Omit<ToolResultPart, 'type' | 'id'>>
  /** what a search waits for */
  searching: (q: string) => Promise<void> | undefined
  called: ToolCallPart[]
  searched: string[]
  asked: GenerationRequest[]
  stored: HistoryMessage[][]
  finished: (RecordedTurn & { trace: TurnTrace })[]
  /** all events of the last turn, those for operators included */
  log: LogEventBody[]
  /** what the last turn spent */
  spent: Spending[]
  /** whether a bounded read of the history gives all of it */
  complete: boolean
  /** how much of the history was asked for, in bytes */
  reads: (number | undefined)[]
}

export const NOW = 1_800_000_000

export const makeWorld = (parts: Partial<World> = {}): World => ({
  documents: { films: [{ id: '1', title: 'Alien', text: 'Alien is a film about a hungry guest in space.' }] },
  vectorFields: [],
  said: [],
  ttls: new Map(),
  now: NOW,
  speak: ({ purpose, question }) =>
    says(purpose === 'standalone' ? `alone: ${question}` : `Answer to ${question}`),
  rewriter: undefined,
  refuse: () => undefined,
  stores: async () => ({ ok: true, value: undefined }),
  tool: async () => ({ text: 'done' }),
  searching: () => undefined,
  called: [],
  searched: [],
  asked: [],
  stored: [],
  finished: [],
  log: [],
  spent: [],
  complete: true,
  reads: [],
  ...parts,
})

export const says = (...texts: string[]): Delta[] => [
  ...texts.map((text): Delta => ({ type: 'text', text })),
  { type: 'finish', reason: 'stop' },
]

export const message = (parts: Partial<StoredMessage>): StoredMessage => ({
  documentId: '0',
  role: 'user',
  content: contentOf('Which horror films are set in space?'),
  timestamp: NOW - 10,
  modelId: 'm',
  ...parts,
})

export const asking = (parts: Partial<AskRequest> = {}): AskRequest => ({
  conversationId: 'c',
  continues: false,
  question: contentOf('What is Alien about?'),
  model: config({ model_name: 'openai/gpt', api_key: 'k' }),
  historyId: 'history',
  searches: [
    { collection: 'films', place: { engine: 'object', objectId: 'films' }, params: { query_by: 'text' } },
  ],
  onSearchError: 'fail',
  read: { results: true, history: true },
  asker: { owner: 'admin', userId: '' },
  protocol: 'typesense',
  ...parts,
})

const result = (name: string, documents: Document[], q: string): SearchResult => ({
  facet_counts: [],
  found: documents.length,
  hits: documents.map((document) => ({ document, highlight: {}, highlights: [] })),
  request_params: { collection_name: name, first_q: q, per_page: 10, q },
  search_cutoff: false,
})

const ports = (world: World, events: TurnEventBody[]): TurnPorts => ({
  model: {
    name: 'openai/gpt',
    async *generate(request, signal) {
      world.asked.push(request)
      yield* world.speak(request, signal)
    },
  },
  rewriter: async () => world.rewriter,
  search: ({ objectId }, params) =>
    attempt(async () => {
      world.searched.push(params.q!)
      await world.searching(params.q!)
      const refusal = world.refuse(objectId, params)
      if (refusal) throw refusal
      const found = world.documents[objectId]
      if (!found) throw new ApiError(404, 'Collection not found')
      return result(objectId, found, params.q!)
    }),
  schema: async () => ({
    ok: true,
    value: {
      name: 'films',
      fields: world.vectorFields.map((name) => field(name, 'float[]', { num_dim: 4 })),
      default_sorting_field: '',
      enable_nested_fields: true,
      token_separators: [],
      symbols_to_index: [],
    },
  }),
  messages: async (bytes) => {
    world.reads.push(bytes)
    return { messages: world.said, complete: world.complete || bytes === undefined }
  },
  callTool: async (call, signal) => {
    world.called.push(call)
    return { type: 'tool_result', id: call.id, ...(await world.tool(call, signal)) }
  },
  ttls: async (ids) => new Map([...world.ttls].filter(([id]) => ids.includes(id))),
  store: async (done, now) => {
    const turn = [...world.log, done].reduce(foldBody, emptyTurn())
    const outcome = await world.stores()
    if (!outcome.ok) return outcome
    world.stored.push(messagesOf(turn, Math.floor(now / 1000)))
    world.finished.push({ ...recordOf(turn, now, 'openai/gpt'), trace: traceOf(turn) })
    return outcome
  },
  emit: (event) => {
    world.log.push(event)
    if (isForReaders(event as LogEvent)) events.push(event as TurnEventBody)
  },
  now: () => world.now * 1000,
})

/** Runs a turn to its end. */
export async function take(
  world: World,
  request: AskRequest,
  signal: AbortSignal = new AbortController().signal,
): Promise<TurnEventBody[]> {
  const events: TurnEventBody[] = []
  world.log = []
  world.spent = await runTurn(request, ports(world, events), signal)
  return events
}

export const ofType = <T extends TurnEventBody['type']>(events: TurnEventBody[], type: T) =>
  events.filter((event): event is Extract<TurnEventBody, { type: T }> => event.type === type)
