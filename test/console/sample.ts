/** A deployment for the tests of the console: one collection and its conversations, with something of every kind in it. */
import { type Event, FakeServer, reply } from './server'

export const QUESTION = 'How does Parley store history?'
export const ANSWER = 'A turn is stored as two documents. Its keeper is Ferdinand Huber, since 1931.'
const NOW = Date.now()
const HOUR_MS = 3_600_000

interface FieldOptions {
  facet?: boolean
  num_dim?: number
}

const field = (name: string, type: string, { facet = false, num_dim }: FieldOptions = {}) => ({
  name,
  type,
  facet,
  optional: false,
  index: true,
  sort: false,
  infix: false,
  locale: '',
  stem: false,
  store: true,
  stem_dictionary: '',
  truncate_len: 100,
  ...(num_dim !== undefined && {
    num_dim,
    vec_dist: 'cosine',
    embed: { from: ['heading', 'text'], model_config: { model_name: 'ts/all-MiniLM-L12-v2' } },
  }),
})

/** A collection as the server tells of it. @param fields names of its texts; one that ends with `*` is a facet */
export const collection = (name: string, fields = ['title'], more: object = {}) => ({
  name,
  num_documents: 2,
  created_at: Math.floor(NOW / 1_000) - 600,
  enable_nested_fields: false,
  default_sorting_field: '',
  token_separators: [],
  symbols_to_index: [],
  synonym_sets: [],
  curation_sets: [],
  fields: fields.map((each) =>
    each === 'embedding'
      ? field(each, 'float[]', { num_dim: 384 })
      : field(each.replace('*', ''), 'string', { facet: each.endsWith('*') }),
  ),
  ...more,
})

export const DOCS = collection('docs', ['heading', 'text', 'section*', 'embedding'], {
  num_documents: 478,
  metadata: { questions: [QUESTION, 'How are keys stored?'] },
})

export const HISTORY = collection('docs_history', ['conversation_id', 'model_id', 'role', 'message'])

export const DOCUMENT = {
  id: 'history',
  heading: QUESTION,
  text: 'A turn is stored as two documents.',
  section: 'conversations',
}

interface HitOptions {
  snippet?: string
  field?: string
  match?: number
  distance?: number
  score?: number
}

/** A hit of a search. */
export const hit = (
  document: { id: string },
  { snippet, field: at = 'text', match = 100, distance, score }: HitOptions = {},
) => ({
  document,
  highlight: {},
  highlights: snippet === undefined ? [] : [{ field: at, matched_tokens: ['history'], snippet }],
  text_match: match,
  text_match_info: { tokens_matched: 1, fields_matched: 1, best_field_weight: 15 },
  ...(distance !== undefined && { vector_distance: distance }),
  ...(score !== undefined && { hybrid_search_info: { rank_fusion_score: score } }),
})

interface FoundOptions {
  found?: number
  out_of?: number
  /** by field, the values of a facet and how often each is found */
  facets?: Record<string, Record<string, number>>
}

/** The result of a search. */
export const found = (
  hits: object[],
  { found: all = hits.length, out_of = 478, facets = {} }: FoundOptions = {},
) => ({
  facet_counts: Object.entries(facets).map(([field_name, counts]) => ({
    field_name,
    sampled: false,
    counts: Object.entries(counts).map(([value, count]) => ({ count, highlighted: value, value })),
    stats: {},
  })),
  found: all,
  hits,
  out_of,
  page: 1,
  request_params: {},
  search_cutoff: false,
  search_time_ms: 3,
})

export const model = (id: string, more: object = {}) => ({
  id,
  model_name: 'local/extractive',
  history_collection: 'docs_history',
  max_bytes: 16_384,
  max_tokens: 1_024,
  ttl: 86_400,
  ...more,
})

export const assistant = (name: string, more: object = {}) => ({
  name,
  model: 'docs',
  collections: ['docs'],
  questions: [QUESTION],
  overrides: ['top'],
  followups: false,
  followup_style: 'list',
  strict: false,
  created_at: NOW - HOUR_MS,
  updated_at: NOW - HOUR_MS,
  ...more,
})

export const key = (id: number, description: string, more: object = {}) => ({
  id,
  value_prefix: 'QyYn',
  description,
  actions: ['documents:search'],
  collections: ['*'],
  expires_at: 64_723_363_199,
  autodelete: false,
  ...more,
})

/** A conversation as lists have it. */
export const summary = (id: string, title = QUESTION, more: object = {}) => ({
  id,
  title,
  model_id: 'docs',
  user_id: '',
  protocol: 'parley',
  turn_count: 1,
  created_at: NOW - HOUR_MS,
  updated_at: NOW - HOUR_MS,
  expires_at: NOW + 24 * HOUR_MS,
  ...more,
})

const cited = (answer: string, at = 'docs') => ({
  collection: at,
  document_id: DOCUMENT.id,
  start: 0,
  end: answer.indexOf('.') + 1,
  quote: DOCUMENT.text,
})

/** A turn as it is stored. */
export const turn = (number: number, question = QUESTION, more: object = {}) => ({
  turn: number,
  question,
  answer: ANSWER,
  finish_reason: 'stop',
  citations: [cited(ANSWER)],
  usage: { model: 'local/extractive', input_tokens: 0, output_tokens: 0 },
  timings: { retrieved: 51, first_token: 83, finished: 98 },
  created_at: NOW - HOUR_MS,
  ...more,
})

interface TraceOptions {
  searches?: object[]
  [more: string]: unknown
}

/** How a turn came about. */
export const traced = (number: number, question = QUESTION, { searches, ...more }: TraceOptions = {}) => ({
  ...turn(number, question),
  trace: {
    question,
    searches: searches ?? [search('docs')],
    calls: [
      {
        purpose: 'answer',
        model: 'local/extractive',
        prompt: [{ role: 'user', content: `<Question>${question}</Question>` }],
        text: ANSWER,
        input_tokens: 12,
        output_tokens: 30,
        started: 60,
        first_token: 83,
        took: 38,
      },
    ],
    ...more,
  },
})

/** A turn that came to no answer, as the trace has it. */
export const failedTurn = (number: number, question: string, message: string) => ({
  ...traced(number, question, { searches: [], calls: [] }),
  answer: '',
  citations: [],
  finish_reason: '',
  created_at: NOW,
  error: { status: 404, message, retryable: false, code: 'search_failed' },
})

/** A search of a turn, as its trace has it. */
export const search = (of: string, params: Record<string, string> = {}, more: object = {}) => ({
  collection: of,
  params: { q: QUESTION, ...params },
  found: 1,
  hits: [{ id: DOCUMENT.id, text_match: 100, vector_distance: 0.3, score: 0.9 }],
  started: 5,
  took: 40,
  ...more,
})

/** The events of a turn that is answered. */
export const answered = (id: string, question: string, answer = ANSWER): Event[] => [
  ['question', { conversation_id: id, question }],
  [
    'retrieval',
    {
      replies: [
        {
          result: {
            ...found([hit(DOCUMENT, { distance: 0.3, score: 0.9 })]),
            request_params: { collection_name: 'docs', q: question },
          },
        },
      ],
      sources: [{ collection: 'docs', document_id: DOCUMENT.id }],
    },
  ],
  ['delta', { text: answer }],
  ['citation', cited(answer)],
  [
    'usage',
    {
      usage: { model: 'local/extractive', input_tokens: 0, output_tokens: 0 },
      timings: { retrieved: 51, first_token: 83, finished: 98 },
    },
  ],
  ['done', { finish_reason: 'stop', answer }],
]

export const usageRow = (more: object = {}) => ({
  day: new Date(NOW).toISOString().slice(0, 10),
  key: 'admin',
  conversation_model_id: 'docs',
  turns: 3,
  input_tokens: 1_000,
  output_tokens: 200,
  ...more,
})

/** A run of a source. */
export const run = (more: object) => ({
  started_at: NOW - 60_000,
  pages: 0,
  changed: 0,
  unchanged: 0,
  gone: 0,
  failed: 0,
  failures: [],
  ...more,
})

/** A website that is read again by itself. */
export const source = (more: object) => ({
  name: 'site.example',
  kind: 'website',
  url: 'https://site.example/',
  collection: 'site',
  every_minutes: 1_440,
  prune: true,
  max_pages: 1_000,
  state: 'waiting',
  next_run_at: NOW + HOUR_MS,
  ...more,
})

export const webhook = (more: object = {}) => ({
  ...{ name: 'crm', url: 'https://crm.example.com/parley', events: ['turn.finished'] },
  ...{ waiting: 0, full: false, created_at: NOW - HOUR_MS, updated_at: NOW - HOUR_MS },
  ...more,
})

/** A message to a webhook. */
export const delivery = (more: object = {}) => ({
  ...{ id: 'm-1', webhook: 'crm', event: 'turn.finished', conversation_id: 'c-1', turn: 1 },
  ...{ state: 'delivered', tries: 1, outcome: 'Status 204', created_at: NOW - HOUR_MS },
  ...more,
})

/** A tool that is stored: an HTTP request, where nothing else is told. */
export const tool = (name: string, more: object = {}) => ({
  ...{ name, leave: 'each', created_at: NOW - HOUR_MS, updated_at: NOW - HOUR_MS },
  ...more,
})

/** Tools of each kind. */
export const BOOKING = tool('booking', {
  title: 'Book a table',
  description: 'Books a table.',
  parameters: { type: 'object', properties: { guests: { type: 'integer' } }, required: ['guests'] },
  http: { method: 'POST', url: 'https://tables.example/bookings' },
  headers: { authorization: 'Beare********' },
})
const NO_PARAMETERS = { type: 'object', properties: {} }
export const DESK = tool('desk', {
  leave: 'once',
  mcp: {
    url: 'https://desk.example/mcp',
    tools: [
      {
        name: 'find',
        title: 'Find a ticket',
        description: 'Finds.',
        parameters: NO_PARAMETERS,
        readOnly: true,
      },
      { name: 'close', description: 'Closes a ticket.', parameters: NO_PARAMETERS },
    ],
  },
})
export const BASKET = tool('basket', { description: 'What is in the basket.', page: true })

/** Calls of tools: one that went well, one that did not, and one that waits for the visitor. */
export const CALLS = [
  { id: 'call-1', name: 'desk_find', title: 'Find a ticket', arguments: '{"of":"ann"}', result: 'Ticket 7.' },
  { id: 'call-2', name: 'basket', arguments: '{}', result: 'There is none.', failed: true },
  { id: 'call-3', name: 'booking', title: 'Book a table', arguments: '{"guests":2}', awaits: 'leave' },
]

/** A server on which nothing was made yet. */
export const emptyServer = (): FakeServer =>
  new FakeServer()
    .on('GET /collections', [])
    .on('GET /aliases', { aliases: [] })
    .on('GET /conversations/models', [])
    .on('GET /assistants', { assistants: [] })
    .on('GET /tools', { tools: [] })
    .on('GET /keys', { keys: [] })
    .on('GET /sources', { sources: [] })
    .on('GET /webhooks', { webhooks: [] })
    .on('GET /webhooks/deliveries', { deliveries: [] })
    .on('GET /question_sets', { sets: [] })
    // An import has ended.
    .on('POST /question_sets', { sets: 0 })
    .on('GET /conversations', { conversations: [] })
    .on('GET /gaps', { turns: 0, gaps: [] })
    .on('GET /usage', { from: '2026-10-31', to: '2026-11-29', usage: [] })

/** A server with the collection `docs`, a model, an assistant, and what each test adds. */
export const sampleServer = (): FakeServer =>
  emptyServer()
    .on('GET /collections', [HISTORY, DOCS])
    .on('GET /collections/docs', DOCS)
    .on(
      'GET /collections/docs/documents/search',
      found([hit(DOCUMENT, { snippet: 'A turn of <mark>history</mark>', distance: 0.3, score: 0.9 })], {
        facets: { section: { conversations: 15, search: 13 } },
      }),
    )
    .on('POST /multi_search', { results: [found([hit(DOCUMENT)])] })
    .on('GET /conversations/models', [model('docs')])
    .on('GET /assistants', { assistants: [assistant('help')] })

interface ConversationParts {
  turns?: object[]
  traces?: object[]
  /** properties of the conversation itself */
  [more: string]: unknown
}

/** Adds a conversation: to read, with its traces, and nothing of it in the log. */
export function withConversation(
  server: FakeServer,
  id: string,
  { turns = [turn(1)], traces = [traced(1)], ...more }: ConversationParts = {},
): FakeServer {
  const one = { ...summary(id), turn_count: turns.length, ...more }
  return server
    .on('GET /conversations', { conversations: [one] })
    .on(`GET /conversations/${id}`, { ...one, turns })
    .on(`GET /conversations/${id}/trace`, { id, turns: traces })
    .on(`GET /conversations/${id}/events`, () => new Response(null, { status: 204 }))
}

/** A reply to what was made. */
export const made = (value: object): Response => reply(201, value)
