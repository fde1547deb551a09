/**
 * Schemas of responses, for ui/openapi.json (scripts/openapi.mjs) and tests. The Worker only uses their types, so they cost
 * no start-up time.
 */
import * as v from 'valibot'
import { SetBody } from './question-set-schemas.ts'
import {
  AssistantName,
  assistantEntries,
  described,
  maybe,
  ToolName,
  toolEntries,
  WebhookBody,
} from './schemas.ts'

const Count = v.pipe(v.number(), v.integer(), v.minValue(0))
const Milliseconds = described(v.pipe(v.number(), v.integer()), 'Unix time in milliseconds')

export const Citation = v.pipe(
  v.object({
    collection: v.string(),
    document_id: v.string(),
    start: described(Count, 'In UTF-16 code units of the answer'),
    end: described(Count, 'Exclusive'),
    quote: maybe(v.string(), 'The sentence of the document that supports this part'),
  }),
)

export const Cut = described(
  v.array(
    v.object({
      collection: v.string(),
      document_id: v.string(),
      passages: described(Count, 'Its passages in the prompt; 0: it was left out'),
      of: described(Count, 'The passages that it has'),
    }),
  ),
  'Documents that did not fit into the prompt whole',
)

export const Usage = v.object({
  model: described(v.string(), 'Full name of the model that answered'),
  input_tokens: v.optional(Count),
  output_tokens: v.optional(Count),
  estimated: maybe(v.boolean(), 'The provider reported none: reckoned from bytes'),
})

export const Timings = described(
  v.object({
    rewritten: v.optional(v.number()),
    retrieved: v.optional(v.number()),
    first_token: v.optional(v.number()),
    finished: v.optional(v.number()),
  }),
  'Milliseconds since the turn began to run',
)

const toolCall = {
  id: v.string(),
  name: v.string(),
  title: maybe(v.string(), 'What it does, for people'),
  arguments: described(v.string(), 'JSON, as the model wrote it'),
  awaits: maybe(
    v.picklist(['leave', 'page']),
    "It has not run: the visitor's `leave` is needed, or their `page` runs it. Decide by `decisions`",
  ),
}
const Calls = described(
  v.array(
    v.object({
      ...toolCall,
      result: maybe(v.string(), 'What the tool replied. Absent: nothing yet'),
      failed: maybe(v.literal(true), 'It did not run, or failed'),
    }),
  ),
  'Calls of tools. Absent: none',
)

/** How far an answer can be relied on. */
const verdict = {
  declined: maybe(
    v.literal(true),
    'There is no answer: the built-in answerer has none or made small talk, or the assistant withheld it',
  ),
  warned: maybe(
    v.literal(true),
    'The built-in answerer is not sure, or the documents support too little. The answer says so',
  ),
  support: maybe(
    v.array(
      v.object({
        start: described(Count, 'Place in the answer, in UTF-16 units'),
        end: Count,
        support: v.picklist(['supported', 'partly', 'not_found']),
        missing: maybe(
          v.array(v.string()),
          'Numbers and names of the sentence that the documents lack, the first five',
        ),
      }),
    ),
    'Whether the documents support each sentence that a language model wrote',
  ),
  author: maybe(v.string(), 'The person who wrote it, where one did. There is no question then'),
}

export const SearchReply = described(
  v.looseObject({}),
  'The result of a search as POST /multi_search gives it, or `error` and `code`',
)

export const Answer = v.object({
  conversation_id: v.string(),
  turn: described(Count, 'Number of the turn in its conversation'),
  question: v.string(),
  standalone: maybe(v.string(), 'The question that was searched, where rewritten'),
  answer: v.string(),
  finish_reason: v.string(),
  ...verdict,
  citations: v.array(Citation),
  calls: v.optional(Calls),
  cut: v.optional(Cut),
  followups: v.optional(v.array(v.string())),
  usage: v.optional(Usage),
  timings: v.optional(Timings),
  results: v.array(SearchReply),
})

export const Feedback = v.object({
  rating: v.optional(v.picklist(['up', 'down'])),
  score: maybe(Count, '1 to 5'),
  comment: v.optional(v.string()),
  reasons: v.optional(v.array(v.string())),
  own: described(v.boolean(), 'Whether it is from whoever reads it'),
  created_at: Milliseconds,
  updated_at: Milliseconds,
})

export const Turn = v.object({
  turn: Count,
  question: v.string(),
  standalone: v.optional(v.string()),
  answer: v.string(),
  finish_reason: v.string(),
  ...verdict,
  citations: v.array(Citation),
  calls: v.optional(Calls),
  followups: maybe(v.array(v.string()), 'What was suggested to ask next'),
  usage: Usage,
  timings: Timings,
  created_at: Milliseconds,
  feedback: maybe(
    v.array(Feedback),
    'What was said of the answer, oldest first: by everybody for the admin key and keys with `conversations:get`, else by the reader',
  ),
})

const summary = {
  id: v.string(),
  title: described(v.string(), 'The beginning of its first question'),
  model_id: described(v.string(), 'Id of the conversation model'),
  user_id: described(v.string(), 'Empty where none was named'),
  protocol: described(v.string(), 'The wire that it began on: `typesense`, `parley`, ...'),
  turn_count: Count,
  created_at: Milliseconds,
  updated_at: Milliseconds,
  expires_at: Milliseconds,
  failed_at: maybe(Milliseconds, 'When a turn last failed or was interrupted; absent: never'),
  ratings: maybe(
    v.object({ up: Count, down: Count }),
    'In a list, for keys that see what everybody says: how its answers were rated, if they were',
  ),
}

export const ConversationSummary = v.object(summary)

export const Replied = v.object({ turn: described(Count, 'Its place in the conversation') })

const Place = v.object({ conversation_id: v.string(), turn: Count, created_at: Milliseconds })

export const Gaps = v.object({
  turns: described(Count, 'Turns that were looked at'),
  since: v.optional(Milliseconds),
  gaps: v.array(
    v.object({
      question: described(v.string(), 'As it was searched'),
      times: Count,
      examples: described(v.array(v.string()), 'Other wordings, five at most'),
      faults: described(
        v.record(v.string(), Count),
        'How often: `declined`, `cites_nothing`, `warned`, `rated_down`, `asked_again`',
      ),
      reasons: described(v.record(v.string(), Count), 'What people said against the answers, and how often'),
      last_asked: Place,
      nearest: described(
        v.array(
          v.object({
            collection: v.string(),
            document_id: v.string(),
            title: v.optional(v.string()),
            url: v.optional(v.string()),
          }),
        ),
        'Documents that came nearest when it was asked last, best first',
      ),
      answered_since: v.optional(described(Place, 'A later turn that answered the same question')),
    }),
  ),
})

export const ConversationPage = v.object({
  conversations: v.array(ConversationSummary),
  next_cursor: maybe(v.string(), '`cursor` of the next page; absent on the last'),
})

export const Conversation = v.object({
  ...summary,
  turns: described(
    v.array(
      v.object({
        ...Turn.entries,
        versions: maybe(
          v.array(Count),
          'Turns that answered this question, or the one that it was edited from, oldest first, this one among them; absent if it was asked once',
        ),
      }),
    ),
    'Oldest first',
  ),
  earlier: maybe(Count, '`before` of the page with earlier turns; absent on the first'),
  handed_over_at: maybe(
    v.number(),
    'When people were asked for, in milliseconds since 1970; absent if that was not within seven days',
  ),
})

const SearchTrace = v.object({
  collection: v.optional(v.string()),
  engine: maybe(v.string(), 'What was asked, if not Parley itself: a cluster'),
  params: described(v.looseObject({}), 'As they were searched, `q` included'),
  found: maybe(Count, 'Absent if the search failed, or had not ended when the turn did'),
  hits: v.optional(
    v.array(
      v.object({
        id: v.optional(v.string()),
        text_match: v.optional(v.number()),
        vector_distance: v.optional(v.number()),
        score: maybe(v.number(), 'Of rank fusion'),
      }),
    ),
  ),
  error: v.optional(v.object({ status: v.number(), message: v.string() })),
  started: described(v.number(), 'Milliseconds since the turn began to run'),
  took: described(v.number(), 'Milliseconds'),
})

const CallTrace = v.object({
  purpose: v.string(),
  model: described(v.string(), 'The one that answered, or that was to'),
  model_id: maybe(
    v.string(),
    'Of its conversation model, where that is not the one asked: it pays for the tokens',
  ),
  failed: maybe(
    v.array(
      v.object({
        model: v.string(),
        error: v.string(),
        model_id: v.optional(v.string()),
        input_tokens: v.optional(Count),
        output_tokens: v.optional(Count),
      }),
    ),
    'Attempts that came to nothing before it, in their order',
  ),
  prompt: described(
    v.array(v.object({ role: v.string(), content: v.string() })),
    'The prompt exactly as it was sent',
  ),
  text: maybe(
    v.string(),
    'What it said. A finished answer stands in the turn instead, unless an assistant withheld it',
  ),
  tools: maybe(v.array(v.string()), 'Names of the tools that it called'),
  finish_reason: v.optional(v.string()),
  input_tokens: Count,
  output_tokens: Count,
  estimated: v.optional(v.boolean()),
  error: v.optional(v.string()),
  started: v.number(),
  first_token: v.optional(v.number()),
  took: v.number(),
  charged: maybe(v.boolean(), 'It was made before the turn began, and charged then'),
})

export const TurnTrace = v.object({
  assistant: maybe(v.string(), 'The assistant that was asked, if one was'),
  question: v.string(),
  standalone: v.optional(v.string()),
  searches: v.array(SearchTrace),
  cut: v.optional(Cut),
  calls: described(v.array(CallTrace), 'Calls to language models'),
  followups: v.optional(v.array(v.string())),
  copy_of: maybe(v.string(), 'The conversation whose answer to the same request this turn has'),
  steps: maybe(
    v.array(
      v.object({
        passages: v.array(v.looseObject({ collection: v.string(), id: v.string() })),
        content: v.array(v.looseObject({ type: v.string() })),
      }),
    ),
    'The steps of a turn whose answer holds more than text, such as calls of tools',
  ),
  shortened: maybe(v.boolean(), 'It was too long to be kept: texts end early'),
})

/** Why a turn failed, in its `error` event and its trace. */
const TurnError = v.object({
  status: v.number(),
  message: v.string(),
  retryable: v.boolean(),
  upstream: maybe(v.boolean(), "A model's provider failed, through no fault of the request"),
  code: described(
    v.string(),
    'What went wrong: `stopped`, `interrupted`, `search_failed`, `model_failed` and others',
  ),
})

export const Trace = v.object({
  id: v.string(),
  turns: v.array(
    v.object({
      ...Turn.entries,
      error: maybe(TurnError, 'What the turn failed with: it then has no answer'),
      trace: TurnTrace,
    }),
  ),
})

export const Stopped = v.object({
  stopped: described(v.boolean(), 'False when no turn was running'),
})
export const FeedbackDeleted = v.object({
  deleted: described(v.boolean(), 'False where there was nothing to delete'),
})
export const Deleted = v.object({ id: v.string() })
export const DeletedAll = v.object({
  deleted: described(Count, 'Conversations deleted'),
  done: described(v.boolean(), 'False when some are left: ask again'),
})
export const Failure = v.object({
  message: v.string(),
  detail: maybe(v.string(), 'What is wrong and what to do, where the message is the same for many faults'),
  code: maybe(
    v.string(),
    'What went wrong, for code to compare: `unknown_model`, `unknown_collection`, `bad_request` and others. ' +
      'Absent where a request is refused before it reaches a route',
  ),
})

/** Schemas of the JSON after `data:`, by the name after `event:`. */
export const eventData = {
  question: v.object({
    conversation_id: v.string(),
    question: v.string(),
    standalone: v.optional(v.string()),
  }),
  retrieval: v.object({
    replies: v.array(SearchReply),
    further: maybe(
      v.array(
        v.object({
          collection: v.string(),
          q: v.string(),
          found: v.optional(Count),
        }),
      ),
      'Searches that the model asked for. Their replies are the last ones',
    ),
    sources: described(
      v.array(v.object({ collection: v.string(), document_id: v.string() })),
      'What went into the prompt, best first',
    ),
    cut: v.optional(Cut),
  }),
  delta: v.object({ text: v.string() }),
  citation: Citation,
  followups: v.object({ questions: v.array(v.string()) }),
  usage: v.object({ usage: Usage, timings: Timings }),
  tool_call: v.object(toolCall),
  tool_result: v.object({ id: v.string(), text: v.string(), failed: v.optional(v.literal(true)) }),
  resumed: described(
    v.object({ answer: v.string(), calls: Calls }),
    'The turn goes on from one that waited: its answer so far',
  ),
  error: TurnError,
  done: v.object({
    finish_reason: v.string(),
    ...verdict,
    answer: described(v.string(), 'The whole answer: the deltas joined'),
  }),
}

const ListedTool = v.object({
  name: v.string(),
  title: v.optional(v.string()),
  description: v.string(),
  parameters: v.record(v.string(), v.unknown()),
  readOnly: maybe(v.literal(true), 'It changes nothing, as its server says'),
})
export const Tool = v.object({
  name: ToolName(),
  ...toolEntries(),
  mcp: maybe(
    v.object({ url: v.string(), tools: v.array(ListedTool) }),
    'The tools of an MCP server, as it described them when they were stored',
  ),
  created_at: Milliseconds,
  updated_at: Milliseconds,
})
export const Tools = v.object({ tools: v.array(Tool) })

export const Assistant = v.object({
  name: AssistantName(),
  ...assistantEntries(),
  handover_secret: maybe(
    v.string(),
    'Signs what `handover.webhook` gets, as Standard Webhooks do. Only where one assistant is read',
  ),
  created_at: Milliseconds,
  updated_at: Milliseconds,
})

export const FoundDocuments = v.object({
  hits: v.array(
    v.object({
      collection: v.string(),
      document_id: v.string(),
      title: v.string(),
      url: maybe(v.string(), 'Absent where the document has no address that is safe to open'),
      snippet: described(
        v.array(v.object({ text: v.string(), mark: v.optional(v.literal(true)) })),
        'The part of its text that matches, in pieces; `mark` where a word was found',
      ),
    }),
  ),
})

export const HandedOver = v.object({
  delivered: described(v.boolean(), 'Whether the webhook took it. Otherwise it is sent again'),
})

export const Assistants = v.object({ assistants: v.array(Assistant) })

export const AssistantFront = v.object({
  name: AssistantName(),
  questions: assistantEntries().questions,
  followups: assistantEntries().followups,
  title_field: assistantEntries().title_field,
  url_field: assistantEntries().url_field,
  citation_field: assistantEntries().citation_field,
  attachments: maybe(
    v.object({
      files: described(v.number(), 'Files of one question, at most'),
      bytes: described(v.number(), 'Bytes of UTF-8 of their names and texts together, at most'),
      pictures: maybe(v.number(), 'Characters of base64 of its pictures together. Absent: no pictures'),
    }),
    'What a question may bring. Absent: no files',
  ),
  handover: v.optional(
    v.object({
      url: maybe(v.string(), 'An address that reaches people'),
      form: maybe(v.boolean(), 'Whether people are reached by `/handover`'),
      after: maybe(Count, 'Answers declined in a row after which it is offered'),
      outside: maybe(v.string(), 'Present outside of office hours: what is said then, or nothing'),
    }),
  ),
})

const Day = v.pipe(v.string(), v.metadata({ format: 'date', description: 'In UTC' }))

export const UsageList = v.object({
  from: Day,
  to: Day,
  usage: v.array(
    v.object({
      day: Day,
      key: described(v.string(), 'Id of the API key, or `admin`'),
      conversation_model_id: v.string(),
      turns: Count,
      input_tokens: Count,
      output_tokens: Count,
    }),
  ),
})

export const Resealed = v.object({
  resealed: described(Count, 'Credentials that were sealed anew'),
})

export const Reconciled = v.object({
  checked: described(Count, 'Ids that were asked for'),
  missing: described(Count, 'Documents whose vector Vectorize does not have'),
  stale: described(Count, 'Documents of which it has another one'),
  extra: described(Count, 'Vectors that no document has any more'),
  waiting: described(Count, 'Not compared: on their way'),
  mended: described(Count, 'What differed and is sent again'),
  done: v.boolean(),
  after: maybe(v.string(), 'While not done: send it with the next request'),
})

// =============================================================================
// Question sets.

const { asks, judge, questions } = SetBody().entries

export const QuestionSet = v.object({
  name: v.string(),
  ...SetBody().entries,
  next_run_at: v.optional(Milliseconds),
  running: maybe(v.string(), 'The run that goes on'),
  runs: described(
    v.array(v.object({ id: v.string(), started_at: Milliseconds })),
    'The latest 20, the last one first',
  ),
})

export const QuestionSets = v.object({ sets: v.array(QuestionSet) })

export const QuestionRun = v.object({
  id: v.string(),
  started_at: Milliseconds,
  ended_at: maybe(v.number(), 'Absent while it goes on'),
  asks,
  judge,
  questions: described(questions, 'Those of the set when it began'),
  answers: described(
    v.array(
      v.object({
        answer: described(v.string(), 'The first 2,000 characters'),
        cited: described(v.array(v.string()), 'Ids of the documents that it cites'),
        found: described(v.array(v.array(v.string())), 'Ids of what each search found, best first'),
        ms: described(v.number(), 'How long it took, in milliseconds'),
        declined: v.optional(v.boolean()),
        warned: v.optional(v.boolean()),
        usage: v.optional(
          v.object({ model: v.string(), input_tokens: v.number(), output_tokens: v.number() }),
        ),
        conversation_id: v.optional(v.string()),
        turn: v.optional(v.number()),
        error: maybe(v.string(), 'Why there is no answer'),
        judged: v.optional(
          v.object({ verdict: v.picklist(['right', 'partly', 'wrong']), reason: v.string() }),
        ),
      }),
    ),
    'In the order of the questions, as far as they were asked',
  ),
})

export const Imported = v.object({
  sets: described(v.pipe(v.number(), v.integer()), 'How many are asked within a minute'),
})

// =============================================================================
// Sources.

const Run = v.object({
  started_at: Milliseconds,
  ended_at: v.optional(Milliseconds),
  pages: described(Count, 'Pages, or files, that were looked at'),
  changed: described(Count, 'Pages that were imported'),
  unchanged: Count,
  gone: described(Count, 'Known pages that are not there any more, or ask not to be shown'),
  failed: Count,
  failures: described(v.array(v.object({ url: v.string(), error: v.string() })), 'The first 20 of them'),
  left: maybe(Count, 'Pages, or files, that wait to be read'),
})

export const Source = v.object({
  name: v.string(),
  kind: described(v.picklist(['website', 'bucket', 'archive']), 'By its address'),
  url: v.string(),
  base_url: v.optional(v.string()),
  collection: v.string(),
  every_minutes: Count,
  prune: v.boolean(),
  max_pages: Count,
  site: maybe(
    v.object({ name: v.optional(v.string()), color: v.optional(v.string()) }),
    'What the first page of a website says of it: its name, and its colour as CSS writes it',
  ),
  state: v.picklist(['waiting', 'reading']),
  next_run_at: Milliseconds,
  run: v.optional(Run),
  last_run: v.optional(Run),
})

export const Sources = v.object({ sources: v.array(Source) })

// =============================================================================
// Webhooks.

const { url, events } = WebhookBody().entries

export const Webhook = v.object({
  name: v.string(),
  url,
  events,
  waiting: described(Count, 'Messages that are still to be sent'),
  full: described(v.boolean(), 'Whether so many wait, for all webhooks, that no others are stored'),
  secret: maybe(v.string(), 'Signs its messages, as Standard Webhooks do. Only where it is new'),
  created_at: Milliseconds,
  updated_at: Milliseconds,
})

export const Webhooks = v.object({ webhooks: v.array(Webhook) })

export const Delivery = v.object({
  id: described(v.string(), 'The same for each attempt: `webhook-id`'),
  webhook: described(v.string(), "Its name, or `a/NAME` for that of an assistant's hand-over"),
  event: v.string(),
  conversation_id: v.optional(v.string()),
  turn: v.optional(Count),
  state: v.picklist(['waiting', 'delivered', 'given_up']),
  tries: Count,
  outcome: maybe(v.string(), 'What came of the last attempt'),
  created_at: Milliseconds,
  next_at: v.optional(Milliseconds),
  delivered_at: v.optional(Milliseconds),
})

export const Deliveries = v.object({ deliveries: v.array(Delivery) })

export const Sent = v.object({
  sent: described(Count, 'Messages that were taken'),
  left: described(v.boolean(), 'Whether more may be due'),
})

// =============================================================================
// Backup and restore.

export const BackupCounts = v.object({
  counts: described(v.record(v.string(), Count), 'Rows by kind'),
})

export const BackupPage = v.object({
  rows: v.array(v.record(v.string(), v.union([v.string(), v.number(), v.null()]))),
  next: maybe(v.string(), 'Send it as `after` for the next page'),
})

export const BackupDocuments = v.object({
  lines: described(v.string(), 'JSON lines, a document each, in the order in which they were added'),
  next: maybe(Count, 'Send it as `after` for the next page'),
})

export const Restored = v.object({
  stored: described(Count, 'Rows that were not there yet'),
  keys: maybe(
    v.array(v.object({ id: Count, description: v.string(), value: v.string() })),
    'Of `keys`: the new values of those that were stored. They are not shown again',
  ),
})
