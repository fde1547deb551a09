/** A whole turn as its events, for tests of encoders. */
import { contentOf } from '../../src/lib/parts'
import type { SearchReply, SourceReference, TurnEvent, TurnEventBody } from '../../src/turn/events'
import { passagesOf } from '../../src/turn/passage'
import { hitsOf, scoreOf, summaryOf, withoutVectors } from '../../src/turn/retrieve'

export const CONVERSATION = 'c-1'

export const HITS = [
  { id: '17', name: 'The tower', url: 'https://example.org/tower', text: 'It is 330 metres high.' },
  { id: 'b.md', text: 'It stands in Paris.' },
]

const hit = (document: { id: string }) => ({ document, highlight: {}, highlights: [] })

/**
 * What a turn tells of its searches: the engine's replies, for who asks for them, and what went into the prompt.
 * @param sources best first
 */
export function found(
  replies: SearchReply[],
  sources: SourceReference[] = [],
): [results: TurnEventBody, retrieval: TurnEventBody] {
  const collectionOf = (reply: SearchReply) =>
    'result' in reply ? reply.result.request_params.collection_name : ''
  const keyOf = (collection: string, id: unknown) => JSON.stringify([collection, id])
  const documents = new Map(
    replies.flatMap((reply) => {
      if (!('result' in reply)) return []
      const collection = collectionOf(reply)
      return hitsOf(reply.result).map((hit) => {
        const document = withoutVectors(hit.document, [])
        return [keyOf(collection, document.id), { collection, document, score: scoreOf(hit) }] as const
      })
    }),
  )
  const passages = passagesOf(
    sources.map(
      ({ collection, document_id: id }) =>
        documents.get(keyOf(collection, id)) ?? { collection, document: { id } },
    ),
  )
  const searches = replies.map((reply) => summaryOf(reply, collectionOf(reply)))
  return [
    { type: 'results', replies },
    { type: 'retrieval', passages, searches },
  ]
}

export const [RESULTS, RETRIEVAL] = found(
  [
    {
      result: {
        facet_counts: [],
        found: 2,
        hits: HITS.map(hit),
        request_params: { collection_name: 'facts', first_q: 'q', per_page: 10, q: 'q' },
        search_cutoff: false,
      },
    },
  ],
  HITS.map(({ id }) => ({ collection: 'facts', document_id: id })),
)

export const [, FAILED_SEARCHES] = found([{ error: 'Collection not found', code: 404 }])

export const ANSWER = 'It is 330 metres high [17]. Füße: 日本 🎬'

/** An event of each type but `error`, in the order of a turn. */
export const TURN: TurnEventBody[] = [
  { type: 'question', question: contentOf('How high?') },
  RETRIEVAL,
  { type: 'delta', text: ANSWER.slice(0, 25) },
  { type: 'delta', text: ANSWER.slice(25) },
  {
    type: 'citation',
    collection: 'facts',
    document_id: '17',
    start: 0,
    end: 27,
    quote: 'It is 330 metres high.',
  },
  { type: 'followups', questions: ['And "how" wide?'] },
  {
    type: 'usage',
    usage: { model: 'openai/gpt', input_tokens: 7, output_tokens: 2 },
    timings: { retrieved: 3, first_token: 40, finished: 90 },
  },
  { type: 'done', finish_reason: 'stop', answer: contentOf(ANSWER) },
]

export const place = (body: TurnEventBody, seq = 0): TurnEvent => ({
  ...body,
  conversation_id: CONVERSATION,
  turn: 3,
  seq,
})

export const turnOf = (bodies: TurnEventBody[]): TurnEvent[] => bodies.map(place)

/** The log of a turn as its Conversation object sends it. */
export const logOf = (bodies: TurnEventBody[]): Uint8Array =>
  new TextEncoder().encode(
    turnOf(bodies)
      .map((event) => `${JSON.stringify(event)}\n`)
      .join(''),
  )
