/** A server for a look at all pages: whatever can go well or badly with a deployment has happened to it. */
import {
  ANSWER,
  assistant,
  BASKET,
  BOOKING,
  CALLS,
  collection,
  DESK,
  DOCS,
  DOCUMENT,
  delivery,
  failedTurn,
  found,
  HISTORY,
  hit,
  key,
  made,
  model,
  QUESTION,
  run,
  sampleServer,
  search,
  source,
  summary,
  traced,
  turn,
  usageRow,
  webhook,
  withConversation,
} from './sample'
import { type FakeServer, failure } from './server'

const NODES = ['https://one.example', 'https://two.example']
const LINKED = collection('linked', ['title'], {
  engine: { type: 'typesense', nodes: NODES, collection: 'shows' },
})
const REFUSED = collection('refused', ['heading', 'text', 'embedding'], {
  pending_embeddings: 12,
  refused_embeddings: 1,
  embedding_error: 'Document `bad`: This text is not taken',
})
const SENTENCE = ANSWER.indexOf('.') + 1
const RATED = {
  rating: 'down',
  comment: 'Too <b>long</b>.',
  reasons: ['long'],
  own: false,
  created_at: 1,
  updated_at: 1,
}
const TURN = {
  standalone: 'How is the history of Parley stored?',
  feedback: [RATED],
  support: [
    { start: 0, end: SENTENCE, support: 'supported' },
    { start: SENTENCE + 1, end: ANSWER.length, support: 'not_found', missing: ['1931'] },
  ],
}
const FAILED_SEARCH = search(
  'linked',
  {},
  {
    engine: 'typesense',
    error: { status: 503, message: 'The cluster does not answer.' },
  },
)

export function fullServer(): FakeServer {
  const server = withConversation(sampleServer(), 'c-1', {
    turns: [turn(1, QUESTION, TURN), turn(2, 'And then?', { citations: [], calls: CALLS })],
    traces: [
      traced(1, QUESTION, {
        standalone: TURN.standalone,
        searches: [search('docs'), FAILED_SEARCH],
        cut: [{ collection: 'docs', document_id: DOCUMENT.id, passages: 1, of: 3 }],
      }),
      failedTurn(3, 'Why?', 'Could not find a field named `nothing`.'),
    ],
    ratings: { up: 2, down: 1 },
    failed_at: Date.now(),
    user_id: 'ann',
  })
  const results = found(
    [hit(DOCUMENT, { snippet: 'A turn of <mark>history</mark>', distance: 0.3, score: 0.9 })],
    {
      facets: { section: { conversations: 15, search: 13 } },
    },
  )
  return server
    .on('GET /collections', [HISTORY, DOCS, LINKED, REFUSED])
    .on('GET /collections/linked', LINKED)
    .on('GET /collections/refused', REFUSED)
    .on('GET /collections/{name}/documents/search', results)
    .on('GET /collections/linked/nodes', {
      nodes: NODES.map((url, at) => ({
        url,
        answers: at === 0,
        took_ms: 7,
        ...(at > 0 && { error: 'it is away' }),
      })),
    })
    .on('GET /conversations/models', [
      model('docs', { model_name: 'openai/gpt-4o-mini', tokens_per_day: 1_000 }),
    ])
    .on('GET /tools', { tools: [BOOKING, DESK, BASKET] })
    .on('GET /assistants/help', assistant('help', { tools: ['search', 'booking'] }))
    .on('GET /a/help', {
      name: 'help',
      questions: [QUESTION],
      followups: false,
    })
    .on('POST /keys', ({ body }) => {
      const { value_prefix: _, ...rest } = key(9, body.description, { limits: body.limits })
      return made({ ...rest, value: 'a-key-that-is-shown-once' })
    })
    .on('POST /conversations', () => failure(422, 'The model does not answer'))
    .on('POST /collections', ({ body }) =>
      body.engine ? failure(400, 'The cluster refuses the credentials.') : made(collection(body.name)),
    )
    .on('GET /collections/{name}', collection('a'))
    .on('POST /collections/{name}/documents/import', () => {
      const refused = { success: false, id: 'a.md', error: 'Field `title` must be a string.', code: 400 }
      return new Response(JSON.stringify(refused))
    })
    .on('GET /keys', {
      keys: [
        key(7, 'the shop', {
          limits: { assistant: 'help', allowed_origins: ['https://www.example.com'], turns_per_day: 2 },
        }),
      ],
    })
    .on('GET /sources', {
      sources: [
        source({ state: 'reading', next_run_at: Date.now(), run: run({ pages: 1 }), name: 'other.example' }),
        source({
          last_run: run({
            pages: 3,
            failed: 1,
            failures: [{ url: 'https://site.example/lost', error: 'It is lost' }],
          }),
        }),
      ],
    })
    .on('GET /gaps', {
      turns: 7,
      gaps: [
        {
          ...{
            question: QUESTION,
            times: 2,
            examples: ['Where is it?'],
            reasons: { outdated: 1 },
            nearest: [],
          },
          faults: { declined: 1, rated_down: 1 },
          last_asked: { conversation_id: 'c-1', turn: 1, created_at: Date.now() },
          answered_since: { conversation_id: 'c-1', turn: 2, created_at: Date.now() },
        },
      ],
    })
    .on('GET /webhooks', { webhooks: [webhook({ waiting: 2, full: true })] })
    .on('GET /webhooks/deliveries', {
      deliveries: [
        delivery({ id: 'm-3', state: 'waiting', next_at: Date.now(), outcome: 'Network connection lost.' }),
        delivery({ id: 'm-2', state: 'given_up', webhook: 'a/help', event: 'handover.requested' }),
        delivery({ delivered_at: Date.now() }),
      ],
    })
    .on('GET /synonym_sets', [{ name: 'coats', items: [{ id: 'coat', synonyms: ['coat', 'jacket'] }] }])
    .on('GET /usage', {
      from: '2026-10-31',
      to: '2026-11-29',
      usage: [usageRow({ key: '7', turns: 1 }), usageRow()],
    })
    .on('GET /conversations', {
      conversations: [summary('c-1', QUESTION, { ratings: { up: 2, down: 1 }, failed_at: Date.now() })],
    })
}
