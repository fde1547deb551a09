/**
 * What comes in and goes out on Parley's own routes. The same schemas validate requests and are written into
 * ui/openapi.json (scripts/openapi.mjs), which is why this file imports nothing of the Worker.
 */
import * as v from 'valibot'

/** Longer ids than these exist nowhere: none is looked for. */
const LONGEST_ID = 512
const LONGEST_USER = 256
const LONGEST_IDEMPOTENCY_KEY = 255
export const MOST_SEARCHES = 50
const LONGEST_QUESTION = 100_000
export const PAGE = 20
const LONGEST_PAGE = 100

export const Id = v.pipe(v.string(), v.minLength(1), v.maxLength(LONGEST_ID))
const Count = v.pipe(v.number(), v.integer(), v.minValue(0))
export const Milliseconds = v.pipe(v.number(), v.integer(), v.description('Unix time in milliseconds'))
export const CollectionName = v.pipe(v.string(), v.minLength(1))

/** A search parameter in JSON: the wire below has strings alone. */
const Parameter = v.union([v.string(), v.number(), v.boolean()])

export const Search = v.objectWithRest({ collection: CollectionName }, Parameter)

export const Ask = v.pipe(
  v.objectWithRest(
    {
      question: v.pipe(v.string(), v.minLength(1), v.maxLength(LONGEST_QUESTION)),
      conversation_id: v.optional(
        v.pipe(Id, v.description('The conversation to go on with. Absent: a new one')),
      ),
      model: v.optional(
        v.pipe(Id, v.description('Id of the conversation model; needed unless the key fixes one')),
      ),
      collections: v.optional(
        v.pipe(
          v.array(CollectionName),
          v.minLength(1),
          v.maxLength(MOST_SEARCHES),
          v.description(
            'Collections to search with what they have: all indexed text, and vectors where there are any',
          ),
        ),
      ),
      searches: v.optional(
        v.pipe(
          v.array(Search),
          v.minLength(1),
          v.maxLength(MOST_SEARCHES),
          v.description('Searches with parameters of their own, in place of `collections`'),
        ),
      ),
      followups: v.optional(
        v.pipe(v.boolean(), v.description('Whether to suggest up to three questions to ask next')),
      ),
      stream: v.optional(
        v.pipe(v.boolean(), v.description('Default: whether `Accept` is text/event-stream')),
      ),
    },
    Parameter,
  ),
  v.check(
    ({ collections, searches }) => (collections === undefined) !== (searches === undefined),
    'Give either `collections` or `searches`.',
  ),
  v.metadata({
    description:
      'Any further property is a search parameter of all searches, such as `filter_by` or `per_page`.',
    // What `check` says, as a JSON schema says it.
    oneOf: [{ required: ['collections'] }, { required: ['searches'] }],
  }),
)

export const UserHeader = v.object({
  'x-typesense-user-id': v.optional(
    v.pipe(v.string(), v.maxLength(LONGEST_USER), v.description('The user on whose behalf the key asks')),
  ),
})

export const AskHeaders = v.object({
  ...UserHeader.entries,
  'idempotency-key': v.optional(
    v.pipe(
      v.string(),
      v.minLength(1),
      v.maxLength(LONGEST_IDEMPOTENCY_KEY),
      v.description('A second request with it joins the first one, and nothing is asked or paid twice'),
    ),
  ),
})

/** `<turn>.<seq>`: the id of an event. */
const Position = v.pipe(
  v.string(),
  v.regex(/^\d{1,9}\.\d{1,9}$/, 'Expected an event id of the form <turn>.<seq>.'),
)

export const EventsQuery = v.object({
  after: v.optional(v.pipe(Position, v.description('Id of the last event that is known'))),
})

export const EventsHeaders = v.object({
  ...UserHeader.entries,
  'last-event-id': v.optional(
    v.pipe(Position, v.description('As `after`, from an EventSource that connects again; wins over it')),
  ),
})

/** A number in a query string, and in the document an integer. */
const number = (minimum: number, maximum: number, metadata: Record<string, unknown>) =>
  v.pipe(
    v.string(),
    v.check(
      (text) => /^\d{1,9}$/.test(text) && Number(text) >= minimum && Number(text) <= maximum,
      `Expected a number from ${minimum} to ${maximum}.`,
    ),
    v.transform(Number),
    v.metadata({ type: 'integer', minimum, maximum, ...metadata }),
  )

const HIGHEST_TURN = 999_999_999
const limit = (what: string, usual: number) => number(1, LONGEST_PAGE, { default: usual, description: what })

export const ListQuery = v.object({
  user_id: v.optional(
    v.pipe(v.string(), v.maxLength(LONGEST_USER), v.description('Only those of this user')),
  ),
  limit: v.optional(limit('Conversations on a page', PAGE)),
  cursor: v.optional(
    v.pipe(v.string(), v.maxLength(1_024), v.description('`next_cursor` of the page before')),
  ),
})

export const ConversationQuery = v.object({
  limit: v.optional(limit('Turns in the answer: the latest', LONGEST_PAGE)),
  before: v.optional(number(1, HIGHEST_TURN, { description: 'Only turns before this one' })),
})

export const TraceQuery = v.object({
  turn: v.optional(number(1, HIGHEST_TURN, { description: 'Only this turn. Absent: the latest 20' })),
})

export const ConversationPath = v.object({ id: Id })
export const UserPath = v.object({ id: v.pipe(v.string(), v.minLength(1), v.maxLength(LONGEST_USER)) })

export const Citation = v.pipe(
  v.object({
    collection: v.string(),
    document_id: v.string(),
    start: v.pipe(Count, v.description('In UTF-16 code units of the answer')),
    end: v.pipe(Count, v.description('Exclusive')),
    quote: v.optional(
      v.pipe(v.string(), v.description('The sentence of the document that supports this part')),
    ),
  }),
)

export const Usage = v.object({
  model: v.pipe(v.string(), v.description('Full name of the model that answered')),
  input_tokens: v.optional(Count),
  output_tokens: v.optional(Count),
  estimated: v.optional(
    v.pipe(v.boolean(), v.description('The provider reported none: reckoned from bytes')),
  ),
})

export const Timings = v.pipe(
  v.object({
    rewritten: v.optional(v.number()),
    retrieved: v.optional(v.number()),
    first_token: v.optional(v.number()),
    finished: v.optional(v.number()),
  }),
  v.description('Milliseconds since the turn began to run'),
)

export const SearchReply = v.pipe(
  v.looseObject({}),
  v.description('The result of a search as POST /multi_search gives it, or `error` and `code`'),
)

export const Answer = v.object({
  conversation_id: v.string(),
  turn: v.pipe(Count, v.description('Number of the turn in its conversation')),
  question: v.string(),
  standalone: v.optional(
    v.pipe(v.string(), v.description('The question that was searched, where rewritten')),
  ),
  answer: v.string(),
  finish_reason: v.string(),
  citations: v.array(Citation),
  followups: v.optional(v.array(v.string())),
  usage: v.optional(Usage),
  timings: v.optional(Timings),
  results: v.array(SearchReply),
})

export const Turn = v.object({
  turn: Count,
  question: v.string(),
  standalone: v.optional(v.string()),
  answer: v.string(),
  finish_reason: v.string(),
  citations: v.array(Citation),
  usage: Usage,
  timings: Timings,
  created_at: Milliseconds,
})

const summary = {
  id: v.string(),
  title: v.pipe(v.string(), v.description('The beginning of its first question')),
  model_id: v.pipe(v.string(), v.description('Id of the conversation model')),
  user_id: v.pipe(v.string(), v.description('Empty where none was named')),
  protocol: v.pipe(v.string(), v.description('The wire that it began on: `typesense`, `parley`, ...')),
  turn_count: Count,
  created_at: Milliseconds,
  updated_at: Milliseconds,
  expires_at: Milliseconds,
}

export const ConversationSummary = v.object(summary)

export const ConversationPage = v.object({
  conversations: v.array(ConversationSummary),
  next_cursor: v.optional(v.pipe(v.string(), v.description('`cursor` of the next page; absent on the last'))),
})

export const Conversation = v.object({
  ...summary,
  turns: v.pipe(v.array(Turn), v.description('Oldest first')),
  earlier: v.optional(
    v.pipe(Count, v.description('`before` of the page with earlier turns; absent on the first')),
  ),
})

const SearchTrace = v.object({
  collection: v.optional(v.string()),
  params: v.pipe(v.looseObject({}), v.description('As they were searched, `q` included')),
  found: v.optional(Count),
  hits: v.optional(
    v.array(
      v.object({
        id: v.optional(v.string()),
        text_match: v.optional(v.number()),
        vector_distance: v.optional(v.number()),
        score: v.optional(v.pipe(v.number(), v.description('Of rank fusion'))),
      }),
    ),
  ),
  error: v.optional(v.object({ status: v.number(), message: v.string() })),
  started: v.pipe(v.number(), v.description('Milliseconds since the turn began to run')),
  took: v.pipe(v.number(), v.description('Milliseconds')),
})

const CallTrace = v.object({
  purpose: v.string(),
  model: v.pipe(v.string(), v.description('The one that answered, or that was to')),
  model_id: v.optional(
    v.pipe(
      v.string(),
      v.description('Of its conversation model, where that is not the one asked: it pays for the tokens'),
    ),
  ),
  failed: v.optional(
    v.pipe(
      v.array(v.object({ model: v.string(), error: v.string() })),
      v.description('Attempts that came to nothing before it, in their order'),
    ),
  ),
  prompt: v.pipe(
    v.array(v.object({ role: v.string(), content: v.string() })),
    v.description('The prompt exactly as it was sent'),
  ),
  text: v.optional(
    v.pipe(v.string(), v.description('What it said; a finished answer stands in the turn instead')),
  ),
  finish_reason: v.optional(v.string()),
  input_tokens: Count,
  output_tokens: Count,
  estimated: v.optional(v.boolean()),
  error: v.optional(v.string()),
  started: v.number(),
  first_token: v.optional(v.number()),
  took: v.number(),
})

export const TurnTrace = v.object({
  question: v.string(),
  standalone: v.optional(v.string()),
  searches: v.array(SearchTrace),
  calls: v.pipe(v.array(CallTrace), v.description('Calls to language models')),
  shortened: v.optional(v.pipe(v.boolean(), v.description('It was too long to be kept: texts end early'))),
})

export const Trace = v.object({
  id: v.string(),
  turns: v.array(v.object({ ...Turn.entries, trace: TurnTrace })),
})

export const Stopped = v.object({
  stopped: v.pipe(v.boolean(), v.description('False when no turn was running')),
})
export const Deleted = v.object({ id: v.string() })
export const DeletedAll = v.object({
  deleted: v.pipe(Count, v.description('Conversations deleted')),
  done: v.pipe(v.boolean(), v.description('False when some are left: ask again')),
})
export const Failure = v.object({ message: v.string() })

/** The JSON after `data:` by the name after `event:`. */
export const eventData = {
  question: v.object({
    conversation_id: v.string(),
    question: v.string(),
    standalone: v.optional(v.string()),
  }),
  retrieval: v.object({
    replies: v.array(SearchReply),
    sources: v.pipe(
      v.array(v.object({ collection: v.string(), document_id: v.string() })),
      v.description('What went into the prompt, best first'),
    ),
  }),
  delta: v.object({ text: v.string() }),
  citation: Citation,
  followups: v.object({ questions: v.array(v.string()) }),
  usage: v.object({ usage: Usage, timings: Timings }),
  error: v.object({
    status: v.number(),
    message: v.string(),
    retryable: v.boolean(),
    upstream: v.optional(
      v.pipe(v.boolean(), v.description("A model's provider failed, through no fault of the request")),
    ),
  }),
  done: v.object({
    finish_reason: v.string(),
    answer: v.pipe(v.string(), v.description('The whole answer: the deltas joined')),
  }),
}
