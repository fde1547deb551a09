/**
 * Schemas of requests to Parley's own routes. They validate requests and go into ui/openapi.json (scripts/openapi.mjs), so this
 * file imports nothing of the Worker.
 */
import * as v from 'valibot'
import { once } from '../../lib/once.ts'
import { LONGEST_FILE_NAME, MOST_FILES, MOST_PICTURES } from '../../lib/text-file.ts'
import { LONGEST_QUESTION, QUESTION_EMPTY, QUESTION_TOO_LONG } from '../../turn/question-length.ts'

/** No id is longer than this: longer ones are not looked up. */
const LONGEST_ID = 512
const LONGEST_USER = 256
const LONGEST_IDEMPOTENCY_KEY = 255
export const MOST_SEARCHES = 50
export const PAGE = 20
const LONGEST_PAGE = 100

export const Id = once(() => v.pipe(v.string(), v.minLength(1), v.maxLength(LONGEST_ID)))
export const CollectionName = once(() => v.pipe(v.string(), v.minLength(1)))

/** A search parameter in JSON. It becomes a string, as on Typesense's wire. */
const Parameter = once(() => v.union([v.string(), v.number(), v.boolean()]))

export const Search = once(() => v.objectWithRest({ collection: CollectionName() }, Parameter()))

const Question = once(() =>
  v.pipe(v.string(), v.minLength(1, QUESTION_EMPTY), v.maxLength(LONGEST_QUESTION, QUESTION_TOO_LONG)),
)

const Replaced = once(() =>
  v.pipe(
    v.number(),
    v.integer(),
    v.minValue(1),
    v.description(
      'Number of the turn that gives way to the answer, with whatever came after it: to regenerate an answer, or to ask an edited question. They stay until the answer is there, and are `versions` of it from then on',
    ),
  ),
)

const Files = once(() =>
  v.pipe(
    v.array(
      v.strictObject({
        name: v.pipe(v.string(), v.minLength(1), v.maxLength(LONGEST_FILE_NAME)),
        type: v.optional(
          v.pipe(v.string(), v.maxLength(255), v.description('Media type, such as `text/markdown`')),
        ),
        text: v.optional(v.string()),
        data: v.optional(
          v.pipe(
            v.string(),
            v.maxLength(MOST_PICTURES),
            v.regex(/^[A-Za-z0-9+/]+={0,2}$/, 'Expected base64.'),
            v.description(
              'A picture in base64, of the `type` PNG, JPEG, WebP or GIF, in the place of a text',
            ),
          ),
        ),
      }),
    ),
    v.maxLength(MOST_FILES),
    v.description(
      "Texts and pictures that this answer may use. Texts take half of the model's `max_bytes` at most, pictures 1,400,000 characters together. They are not stored",
    ),
  ),
)

const REPLACES_WHAT = '`replaces` needs the `conversation_id` of the turn.'

export const Ask = once(() =>
  v.pipe(
    v.objectWithRest(
      {
        question: Question(),
        conversation_id: v.optional(
          v.pipe(Id(), v.description('The conversation to go on with. Absent: a new one')),
        ),
        model: v.optional(
          v.pipe(Id(), v.description('Id of the conversation model; needed unless the key fixes one')),
        ),
        collections: v.optional(
          v.pipe(
            v.array(CollectionName()),
            v.minLength(1),
            v.maxLength(MOST_SEARCHES),
            v.description(
              'Collections to search with what they have: all indexed text, and vectors where there are any',
            ),
          ),
        ),
        searches: v.optional(
          v.pipe(
            v.array(Search()),
            v.minLength(1),
            v.maxLength(MOST_SEARCHES),
            v.description('Searches with parameters of their own, in place of `collections`'),
          ),
        ),
        replaces: v.optional(Replaced()),
        files: v.optional(Files()),
        followups: v.optional(
          v.pipe(v.boolean(), v.description('Whether to suggest up to three questions to ask next')),
        ),
        stream: v.optional(
          v.pipe(v.boolean(), v.description('Default: whether `Accept` is text/event-stream')),
        ),
      },
      Parameter(),
    ),
    v.check(
      ({ collections, searches }) => (collections === undefined) !== (searches === undefined),
      'Give either `collections` or `searches`.',
    ),
    v.check(({ conversation_id: id, replaces }) => replaces === undefined || id !== undefined, REPLACES_WHAT),
    v.metadata({
      description:
        'Any further property is a search parameter of all searches, such as `filter_by` or `per_page`.',
      // The rule of `check`, in terms of JSON Schema.
      oneOf: [{ required: ['collections'] }, { required: ['searches'] }],
    }),
  ),
)

export const AskAssistant = once(() =>
  v.pipe(
    v.strictObject({
      question: Question(),
      conversation_id: v.optional(
        v.pipe(Id(), v.description('The conversation to go on with. Absent: a new one')),
      ),
      replaces: v.optional(Replaced()),
      files: v.optional(
        v.pipe(
          Files(),
          v.description('Text files that this answer may use, if the assistant has `attachments`'),
        ),
      ),
      followups: v.optional(
        v.pipe(
          v.boolean(),
          v.description(
            'Whether to suggest up to three questions to ask next. Default: as the assistant does',
          ),
        ),
      ),
      stream: v.optional(
        v.pipe(v.boolean(), v.description('Default: whether `Accept` is text/event-stream')),
      ),
    }),
    v.check(({ conversation_id: id, replaces }) => replaces === undefined || id !== undefined, REPLACES_WHAT),
  ),
)

export const UserHeader = once(() =>
  v.object({
    'x-typesense-user-id': v.optional(
      v.pipe(
        v.string(),
        v.maxLength(LONGEST_USER),
        v.description('The user on whose behalf the key asks: a label, unless the key fixes the user'),
      ),
    ),
    'x-parley-visitor': v.optional(
      v.pipe(
        v.string(),
        v.description(
          'A secret of the visitor who asks: a random value of 32 to 256 letters, digits, dashes and underscores. What is asked with it is open to nobody else with this key',
        ),
        // Checked where every protocol is (auth/access.ts).
        v.metadata({ minLength: 32, maxLength: 256 }),
      ),
    ),
  }),
)

export const AskHeaders = once(() =>
  v.object({
    ...UserHeader().entries,
    'idempotency-key': v.optional(
      v.pipe(
        v.string(),
        v.minLength(1),
        v.maxLength(LONGEST_IDEMPOTENCY_KEY),
        v.description('A second request with it joins the first one, and nothing is asked or paid twice'),
      ),
    ),
  }),
)

/** `<turn>.<seq>`: the id of an event. */
const Position = once(() =>
  v.pipe(v.string(), v.regex(/^\d{1,9}\.\d{1,9}$/, 'Expected an event id of the form <turn>.<seq>.')),
)

export const EventsQuery = once(() =>
  v.object({
    after: v.optional(v.pipe(Position(), v.description('Id of the last event that is known'))),
  }),
)

export const EventsHeaders = once(() =>
  v.object({
    ...UserHeader().entries,
    'last-event-id': v.optional(
      v.pipe(Position(), v.description('As `after`, from an EventSource that connects again; wins over it')),
    ),
  }),
)

/** A number in a query string, and in the document an integer. */
export const number = (minimum: number, maximum: number, metadata: Record<string, unknown>) =>
  v.pipe(
    v.string(),
    v.check(
      (text) => /^\d{1,16}$/.test(text) && Number(text) >= minimum && Number(text) <= maximum,
      `Expected a number from ${minimum} to ${maximum}.`,
    ),
    v.transform(Number),
    v.metadata({ type: 'integer', minimum, maximum, ...metadata }),
  )

const HIGHEST_TURN = 999_999_999
const limit = (what: string, usual: number) => number(1, LONGEST_PAGE, { default: usual, description: what })

const LONGEST_SEARCH = 200
/** The last day that a `Date` has. */
const LATEST = 8_640_000_000_000_000

/** A condition in a query string. `false` would not be its opposite, so it is refused. */
const flag = (what: string) =>
  v.pipe(
    v.picklist(['true'], 'Expected `true`.'),
    v.transform(() => true),
    v.description(what),
  )

export const ListQuery = once(() =>
  v.object({
    user_id: v.optional(
      v.pipe(v.string(), v.maxLength(LONGEST_USER), v.description('Only those of this user')),
    ),
    mine: v.optional(
      flag(
        "Only those that were begun with the same key and the same secret in `X-Parley-Visitor`, or by the key's user",
      ),
    ),
    limit: v.optional(limit('Conversations on a page', PAGE)),
    cursor: v.optional(
      v.pipe(v.string(), v.maxLength(1_024), v.description('`next_cursor` of the page before')),
    ),
    q: v.optional(
      v.pipe(
        v.string(),
        v.minLength(1),
        v.maxLength(LONGEST_SEARCH),
        v.description(
          'Words that a question and its answer contain, or begin with. The latest 5,000 turns that match are looked at',
        ),
      ),
    ),
    rating: v.optional(
      v.pipe(
        v.picklist(['up', 'down'], 'Expected `up` or `down`.'),
        v.description('Only those with an answer that is rated so'),
      ),
    ),
    unanswered: v.optional(flag('Only those with an answer that cites nothing')),
    failed: v.optional(flag('Only those with a turn that failed')),
    from: v.optional(
      number(0, LATEST, { description: 'Last used at this moment or later, in Unix milliseconds' }),
    ),
    to: v.optional(number(0, LATEST, { description: 'Last used before this moment, in Unix milliseconds' })),
  }),
)

export const ConversationQuery = once(() =>
  v.object({
    limit: v.optional(limit('Turns in the answer: the latest', LONGEST_PAGE)),
    before: v.optional(number(1, HIGHEST_TURN, { description: 'Only turns before this one' })),
    version: v.optional(
      number(1, HIGHEST_TURN, {
        description: 'One of the `versions` of a turn: the conversation as it was when that one was in it',
      }),
    ),
  }),
)

export const TraceQuery = once(() =>
  v.object({
    turn: v.optional(number(1, HIGHEST_TURN, { description: 'Only this turn. Absent: the latest 20' })),
  }),
)

/** Characters of a title, as of the one that a conversation begins with. */
const LONGEST_TITLE = 200

export const Rename = once(() =>
  v.strictObject({
    title: v.pipe(v.string(), v.regex(/\S/, 'Expected a title.'), v.maxLength(LONGEST_TITLE)),
  }),
)

export const ConversationPath = once(() => v.object({ id: Id() }))
export const TurnPath = once(() =>
  v.object({
    id: Id(),
    turn: number(1, HIGHEST_TURN, { description: 'Number of the turn in its conversation' }),
  }),
)

const LONGEST_COMMENT = 2_000
const MOST_REASONS = 10
const LONGEST_REASON = 100

/** Feedback on an answer. */
export const Feedback = once(() =>
  v.pipe(
    v.strictObject({
      rating: v.optional(v.picklist(['up', 'down'], 'Expected `up` or `down`.')),
      score: v.optional(
        v.pipe(
          v.number(),
          v.integer(),
          v.minValue(1),
          v.maxValue(5),
          v.description('Where there is no `rating`, 4 and 5 count as `up`, 1 and 2 as `down`'),
        ),
      ),
      comment: v.optional(v.pipe(v.string(), v.maxLength(LONGEST_COMMENT))),
      reasons: v.optional(
        v.pipe(
          v.array(v.pipe(v.string(), v.minLength(1), v.maxLength(LONGEST_REASON))),
          v.maxLength(MOST_REASONS),
          v.description('Words of your own, such as `wrong` or `slow`'),
        ),
      ),
    }),
    v.check(
      ({ rating, score, comment = '' }) =>
        rating !== undefined || score !== undefined || comment.trim() !== '',
      'Give a `rating`, a `score` or a `comment`.',
    ),
  ),
)
export const UserPath = once(() =>
  v.object({ id: v.pipe(v.string(), v.minLength(1), v.maxLength(LONGEST_USER)) }),
)

/** A day of the calendar; one that no month has is read by Date as one of the next. */
const day = (what: string) =>
  v.pipe(
    v.string(),
    v.check(
      (text) => /^\d{4}-\d\d-\d\d$/.test(text) && new Date(text).toJSON()?.startsWith(text) === true,
      'Expected a day in the form YYYY-MM-DD.',
    ),
    v.metadata({ format: 'date', description: what }),
  )

/** Rows of usage in one answer. */
export const MOST_USAGE = 1_000
const FURTHEST_ROW = 999_999_999

export const UsageQuery = once(() =>
  v.object({
    from: v.optional(day('The first day, in UTC. Absent: 29 days before the last')),
    to: v.optional(day('The last day. Absent: today')),
    key: v.optional(
      v.pipe(v.string(), v.maxLength(LONGEST_ID), v.description('Only of this key: its id, or `admin`')),
    ),
    model: v.optional(v.pipe(Id(), v.description('Only of this conversation model'))),
    limit: v.optional(number(1, MOST_USAGE, { default: MOST_USAGE, description: 'Rows in the answer' })),
    offset: v.optional(number(0, FURTHEST_ROW, { default: 0, description: 'Rows to leave out' })),
  }),
)

export const ReconcileQuery = once(() =>
  v.object({
    collection: v.pipe(CollectionName(), v.description('The one whose vectors are compared')),
    after: v.optional(
      v.pipe(v.string(), v.maxLength(LONGEST_ID), v.description('`after` of the last answer')),
    ),
  }),
)
