/** A whole turn as its events, for tests of encoders. */
import type { TurnEvent, TurnEventBody } from '../../src/turn/events'

export const CONVERSATION = 'c-1'

export const HITS = [
  { id: '17', name: 'The tower', url: 'https://example.org/tower', text: 'It is 330 metres high.' },
  { id: 'b.md', text: 'It stands in Paris.' },
]

const hit = (document: { id: string }) => ({ document, highlight: {}, highlights: [] })

export const RETRIEVAL: TurnEventBody = {
  type: 'retrieval',
  replies: [
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
  sources: HITS.map(({ id }) => ({ collection: 'facts', document_id: id })),
}

export const FAILED_SEARCHES: TurnEventBody = {
  type: 'retrieval',
  replies: [{ error: 'Collection not found', code: 404 }],
  sources: [],
}

export const ANSWER = 'It is 330 metres high [17]. Füße: 日本 🎬'

/** An event of each type but `error`, in the order of a turn. */
export const TURN: TurnEventBody[] = [
  { type: 'question', question: 'How high?' },
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
  { type: 'done', finish_reason: 'stop', answer: ANSWER },
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
