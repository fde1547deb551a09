/**
 * Schemas of responses, for ui/openapi.json (scripts/openapi.mjs) and tests. The Worker only uses their types, so they cost
 * no start-up time.
 */
import * as v from 'valibot'
import { Citation, Count, Cut, Milliseconds, Timings, Usage, verdict } from './answer-parts.ts'
import { AssistantName, assistantEntries } from './assistant-schemas.ts'

export { Citation, Cut, Timings, Usage }

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
  ...verdict,
  citations: v.array(Citation),
  cut: v.optional(Cut),
  followups: v.optional(v.array(v.string())),
  usage: v.optional(Usage),
  timings: v.optional(Timings),
  results: v.array(SearchReply),
})

export const Feedback = v.object({
  rating: v.optional(v.picklist(['up', 'down'])),
  score: v.optional(v.pipe(Count, v.description('1 to 5'))),
  comment: v.optional(v.string()),
  reasons: v.optional(v.array(v.string())),
  own: v.pipe(v.boolean(), v.description('Whether it is from whoever reads it')),
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
  followups: v.optional(v.pipe(v.array(v.string()), v.description('What was suggested to ask next'))),
  usage: Usage,
  timings: Timings,
  created_at: Milliseconds,
  feedback: v.optional(
    v.pipe(
      v.array(Feedback),
      v.description(
        'What was said of the answer, oldest first: by everybody for the admin key and keys with `conversations:get`, else by the reader',
      ),
    ),
  ),
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
  failed_at: v.optional(
    v.pipe(Milliseconds, v.description('When a turn last failed or was interrupted; absent: never')),
  ),
  ratings: v.optional(
    v.pipe(
      v.object({ up: Count, down: Count }),
      v.description(
        'In a list, for keys that see what everybody says: how its answers were rated, if they were',
      ),
    ),
  ),
}

export const ConversationSummary = v.object(summary)

export const ConversationPage = v.object({
  conversations: v.array(ConversationSummary),
  next_cursor: v.optional(v.pipe(v.string(), v.description('`cursor` of the next page; absent on the last'))),
})

export const Conversation = v.object({
  ...summary,
  turns: v.pipe(
    v.array(
      v.object({
        ...Turn.entries,
        versions: v.optional(
          v.pipe(
            v.array(Count),
            v.description(
              'Turns that answered this question, or the one that it was edited from, oldest first, this one among them; absent if it was asked once',
            ),
          ),
        ),
      }),
    ),
    v.description('Oldest first'),
  ),
  earlier: v.optional(
    v.pipe(Count, v.description('`before` of the page with earlier turns; absent on the first')),
  ),
})

const SearchTrace = v.object({
  collection: v.optional(v.string()),
  engine: v.optional(v.pipe(v.string(), v.description('What was asked, if not Parley itself: a cluster'))),
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
      v.array(
        v.object({
          model: v.string(),
          error: v.string(),
          model_id: v.optional(v.string()),
          input_tokens: v.optional(Count),
          output_tokens: v.optional(Count),
        }),
      ),
      v.description('Attempts that came to nothing before it, in their order'),
    ),
  ),
  prompt: v.pipe(
    v.array(v.object({ role: v.string(), content: v.string() })),
    v.description('The prompt exactly as it was sent'),
  ),
  text: v.optional(
    v.pipe(
      v.string(),
      v.description(
        'What it said. A finished answer stands in the turn instead, unless an assistant withheld it',
      ),
    ),
  ),
  finish_reason: v.optional(v.string()),
  input_tokens: Count,
  output_tokens: Count,
  estimated: v.optional(v.boolean()),
  error: v.optional(v.string()),
  started: v.number(),
  first_token: v.optional(v.number()),
  took: v.number(),
  charged: v.optional(
    v.pipe(v.boolean(), v.description('It was made before the turn began, and charged then')),
  ),
})

export const TurnTrace = v.object({
  assistant: v.optional(v.pipe(v.string(), v.description('The assistant that was asked, if one was'))),
  question: v.string(),
  standalone: v.optional(v.string()),
  searches: v.array(SearchTrace),
  cut: v.optional(Cut),
  calls: v.pipe(v.array(CallTrace), v.description('Calls to language models')),
  followups: v.optional(v.array(v.string())),
  copy_of: v.optional(
    v.pipe(v.string(), v.description('The conversation whose answer to the same request this turn has')),
  ),
  steps: v.optional(
    v.pipe(
      v.array(
        v.object({
          passages: v.array(v.looseObject({ collection: v.string(), id: v.string() })),
          content: v.array(v.looseObject({ type: v.string() })),
        }),
      ),
      v.description('The steps of a turn whose answer holds more than text, such as calls of tools'),
    ),
  ),
  shortened: v.optional(v.pipe(v.boolean(), v.description('It was too long to be kept: texts end early'))),
})

/** Why a turn failed, in its `error` event and its trace. */
const TurnError = v.object({
  status: v.number(),
  message: v.string(),
  retryable: v.boolean(),
  upstream: v.optional(
    v.pipe(v.boolean(), v.description("A model's provider failed, through no fault of the request")),
  ),
  code: v.pipe(
    v.string(),
    v.description('What went wrong: `stopped`, `interrupted`, `search_failed`, `model_failed` and others'),
  ),
})

export const Trace = v.object({
  id: v.string(),
  turns: v.array(
    v.object({
      ...Turn.entries,
      error: v.optional(v.pipe(TurnError, v.description('What the turn failed with: it then has no answer'))),
      trace: TurnTrace,
    }),
  ),
})

export const Stopped = v.object({
  stopped: v.pipe(v.boolean(), v.description('False when no turn was running')),
})
export const FeedbackDeleted = v.object({
  deleted: v.pipe(v.boolean(), v.description('False where there was nothing to delete')),
})
export const Deleted = v.object({ id: v.string() })
export const DeletedAll = v.object({
  deleted: v.pipe(Count, v.description('Conversations deleted')),
  done: v.pipe(v.boolean(), v.description('False when some are left: ask again')),
})
export const Failure = v.object({
  message: v.string(),
  detail: v.optional(
    v.pipe(
      v.string(),
      v.description('What is wrong and what to do, where the message is the same for many faults'),
    ),
  ),
  code: v.optional(
    v.pipe(
      v.string(),
      v.description(
        'What went wrong, for code to compare: `unknown_model`, `unknown_collection`, `bad_request` and others. ' +
          'Absent where a request is refused before it reaches a route',
      ),
    ),
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
    further: v.optional(
      v.pipe(
        v.array(
          v.object({
            collection: v.string(),
            q: v.string(),
            found: v.optional(Count),
            again: v.optional(
              v.pipe(
                v.boolean(),
                v.description('It was asked for once the model had read what was found before'),
              ),
            ),
          }),
        ),
        v.description('Searches that the model asked for. Their replies are the last ones'),
      ),
    ),
    sources: v.pipe(
      v.array(v.object({ collection: v.string(), document_id: v.string() })),
      v.description('What went into the prompt, best first'),
    ),
    cut: v.optional(Cut),
  }),
  delta: v.object({ text: v.string() }),
  citation: Citation,
  followups: v.object({ questions: v.array(v.string()) }),
  usage: v.object({ usage: Usage, timings: Timings }),
  error: TurnError,
  done: v.object({
    finish_reason: v.string(),
    ...verdict,
    answer: v.pipe(v.string(), v.description('The whole answer: the deltas joined')),
  }),
}

export const Assistant = v.object({
  name: AssistantName(),
  ...assistantEntries(),
  handover_secret: v.optional(
    v.pipe(
      v.string(),
      v.description(
        'Signs what `handover.webhook` gets, as Standard Webhooks do. Only where one assistant is read',
      ),
    ),
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
      url: v.optional(
        v.pipe(v.string(), v.description('Absent where the document has no address that is safe to open')),
      ),
      snippet: v.pipe(
        v.array(v.object({ text: v.string(), mark: v.optional(v.literal(true)) })),
        v.description('The part of its text that matches, in pieces; `mark` where a word was found'),
      ),
    }),
  ),
})

export const HandedOver = v.object({
  delivered: v.pipe(v.boolean(), v.description('Whether the webhook took it. Otherwise it is sent again')),
})

export const Assistants = v.object({ assistants: v.array(Assistant) })

export const AssistantFront = v.object({
  name: AssistantName(),
  questions: assistantEntries().questions,
  followups: assistantEntries().followups,
  title_field: assistantEntries().title_field,
  url_field: assistantEntries().url_field,
  citation_field: assistantEntries().citation_field,
  attachments: v.optional(
    v.pipe(
      v.object({
        files: v.pipe(v.number(), v.description('Files of one question, at most')),
        bytes: v.pipe(v.number(), v.description('Bytes of UTF-8 of their names and texts together, at most')),
        pictures: v.optional(
          v.pipe(
            v.number(),
            v.description('Characters of base64 of its pictures together. Absent: no pictures'),
          ),
        ),
      }),
      v.description('What a question may bring. Absent: no files'),
    ),
  ),
  handover: v.optional(
    v.object({
      url: v.optional(v.pipe(v.string(), v.description('An address that reaches people'))),
      form: v.optional(v.pipe(v.boolean(), v.description('Whether people are reached by `/handover`'))),
      after: v.optional(v.pipe(Count, v.description('Answers declined in a row after which it is offered'))),
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
      key: v.pipe(v.string(), v.description('Id of the API key, or `admin`')),
      conversation_model_id: v.string(),
      turns: Count,
      input_tokens: Count,
      output_tokens: Count,
    }),
  ),
})

export const Resealed = v.object({
  resealed: v.pipe(Count, v.description('Credentials that were sealed anew')),
})

export const Reconciled = v.object({
  checked: v.pipe(Count, v.description('Ids that were asked for')),
  missing: v.pipe(Count, v.description('Documents whose vector Vectorize does not have')),
  stale: v.pipe(Count, v.description('Documents of which it has another one')),
  extra: v.pipe(Count, v.description('Vectors that no document has any more')),
  waiting: v.pipe(Count, v.description('Not compared: on their way')),
  mended: v.pipe(Count, v.description('What differed and is sent again')),
  done: v.boolean(),
  after: v.optional(v.pipe(v.string(), v.description('While not done: send it with the next request'))),
})
