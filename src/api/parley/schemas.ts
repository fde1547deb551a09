/**
 * Schemas of requests to Parley's own routes. They validate requests and go into ui/openapi.json (scripts/openapi.mjs), so this
 * file imports nothing of the Worker.
 */
import * as v from 'valibot'
import { BACKUP_KINDS } from '../../db/backup-kinds.ts'
import { EVENTS } from '../../db/webhook-events.ts'
import { DAYS, isTimeZone } from '../../lib/hours.ts'
import { once } from '../../lib/once.ts'
import { MOST_ORIGINS, ORIGIN_PATTERN } from '../../lib/origins.ts'
import { LONGEST_FILE_NAME, MOST_FILES, MOST_PICTURES } from '../../lib/text-file.ts'
import { OVERRIDES, SAFE_OVERRIDES } from '../../registry/overrides.ts'
import { LONGEST_QUESTION, QUESTION_EMPTY, QUESTION_TOO_LONG } from '../../turn/question-length.ts'

type Any = v.BaseSchema<unknown, unknown, v.BaseIssue<unknown>>

/** @param description for the document */
export const described = <S extends Any>(schema: S, description: string) =>
  v.pipe(schema, v.description(description))

/** The same, where the value may be absent. */
export const maybe = <S extends Any>(schema: S, description: string) =>
  v.optional(described(schema, description))

/** The same, with what an absent value means. */
const usually = <S extends Any, const Usual extends v.Default<S, undefined>>(
  schema: S,
  description: string,
  usual: Usual,
) => v.optional(described(schema, description), usual)

/** A text that is not empty. @param most characters */
export const Text = (most: number) => v.pipe(v.string(), v.minLength(1), v.maxLength(most))
/** One that may be. */
const UpTo = (most: number) => v.pipe(v.string(), v.maxLength(most))
const Matching = (pattern: RegExp, fault: string) => v.pipe(v.string(), v.regex(pattern, fault))
/** A text of more than spaces. @param what is expected */
const Said = (most: number, what: string) =>
  v.pipe(v.string(), v.regex(/\S/, `Expected ${what}.`), v.maxLength(most))
const Url = (most: number, fault?: string) => v.pipe(v.string(), v.maxLength(most), v.url(fault))
const Integer = (least: number, most: number) =>
  v.pipe(v.number(), v.integer(), v.minValue(least), v.maxValue(most))
const Some = <S extends Any>(item: S, most: number) =>
  v.pipe(v.array(item), v.minLength(1), v.maxLength(most))

/** No id is longer than this: longer ones are not looked up. */
const LONGEST_ID = 512
const LONGEST_USER = 256
const LONGEST_IDEMPOTENCY_KEY = 255
const MOST_SEARCHES = 50
export const PAGE = 20
const LONGEST_PAGE = 100

export const Id = once(() => Text(LONGEST_ID))
export const CollectionName = once(() => v.pipe(v.string(), v.minLength(1)))

/** A search parameter in JSON. It becomes a string, as on Typesense's wire. */
const Parameter = once(() => v.union([v.string(), v.number(), v.boolean()]))

export const Search = once(() => v.objectWithRest({ collection: CollectionName() }, Parameter()))

const Question = once(() =>
  v.pipe(v.string(), v.minLength(1, QUESTION_EMPTY), v.maxLength(LONGEST_QUESTION, QUESTION_TOO_LONG)),
)

/** What is searched: one of the two. */
const searched = once(() => ({
  collections: maybe(
    Some(CollectionName(), MOST_SEARCHES),
    'Collections to search with what they have: all indexed text, and vectors where there are any',
  ),
  searches: maybe(
    Some(Search(), MOST_SEARCHES),
    'Searches with parameters of their own, in place of `collections`',
  ),
}))

const Replaced = once(() =>
  described(
    v.pipe(v.number(), v.integer(), v.minValue(1)),
    'Number of the turn that gives way to the answer, with whatever came after it: to regenerate an answer, or to ask an edited question. They stay until the answer is there, and are `versions` of it from then on',
  ),
)

const Files = once(() =>
  described(
    v.pipe(
      v.array(
        v.strictObject({
          name: Text(LONGEST_FILE_NAME),
          type: maybe(UpTo(255), 'Media type, such as `text/markdown`'),
          text: v.optional(v.string()),
          data: maybe(
            v.pipe(
              v.string(),
              v.maxLength(MOST_PICTURES),
              v.regex(/^[A-Za-z0-9+/]+={0,2}$/, 'Expected base64.'),
            ),
            'A picture in base64, of the `type` PNG, JPEG, WebP or GIF, in the place of a text',
          ),
        }),
      ),
      v.maxLength(MOST_FILES),
    ),
    "Texts and pictures that this answer may use. Texts take half of the model's `max_bytes` at most, pictures 1,400,000 characters together. They are not stored",
  ),
)

const REPLACES_WHAT = '`replaces` needs the `conversation_id` of the turn.'

export const Ask = once(() =>
  v.pipe(
    v.objectWithRest(
      {
        question: Question(),
        conversation_id: maybe(Id(), 'The conversation to go on with. Absent: a new one'),
        model: maybe(Id(), 'Id of the conversation model; needed unless the key fixes one'),
        ...searched(),
        replaces: v.optional(Replaced()),
        files: v.optional(Files()),
        followups: maybe(v.boolean(), 'Whether to suggest up to three questions to ask next'),
        stream: maybe(v.boolean(), 'Default: whether `Accept` is text/event-stream'),
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

const Decisions = once(() =>
  v.record(
    v.string(),
    v.union([
      v.boolean(),
      v.strictObject({
        result: UpTo(64_000),
        failed: v.optional(v.literal(true)),
      }),
    ]),
  ),
)

export const AskAssistant = once(() =>
  v.pipe(
    v.strictObject({
      question: maybe(Question(), 'Left out with `decisions`: the question of the turn stays'),
      decisions: maybe(
        Decisions(),
        'About the calls of tools that turn `replaces` waits for, by their ids: whether the visitor allows one, or the `result` that their page made. The turn goes on, under a new number',
      ),
      conversation_id: maybe(Id(), 'The conversation to go on with. Absent: a new one'),
      replaces: v.optional(Replaced()),
      files: maybe(Files(), 'Text files that this answer may use, if the assistant has `attachments`'),
      followups: maybe(
        v.boolean(),
        'Whether to suggest up to three questions to ask next. Default: as the assistant does',
      ),
      stream: maybe(v.boolean(), 'Default: whether `Accept` is text/event-stream'),
    }),
    v.check(({ conversation_id: id, replaces }) => replaces === undefined || id !== undefined, REPLACES_WHAT),
    v.check(
      ({ question, decisions }) => (question === undefined) !== (decisions === undefined),
      'Give either `question` or `decisions`.',
    ),
    v.check(
      ({ decisions, replaces, files }) => !decisions || (replaces !== undefined && files === undefined),
      '`decisions` need `replaces`, the turn that they are about, and no `files`.',
    ),
  ),
)

export const UserHeader = once(() =>
  v.object({
    'x-typesense-user-id': maybe(
      UpTo(LONGEST_USER),
      'The user on whose behalf the key asks: a label, unless the key fixes the user',
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
    'idempotency-key': maybe(
      Text(LONGEST_IDEMPOTENCY_KEY),
      'A second request with it joins the first one, and nothing is asked or paid twice',
    ),
  }),
)

/** `<turn>.<seq>`: the id of an event. */
const Position = once(() => Matching(/^\d{1,9}\.\d{1,9}$/, 'Expected an event id of the form <turn>.<seq>.'))

export const EventsQuery = once(() =>
  v.object({
    after: maybe(Position(), 'Id of the last event that is known'),
  }),
)

export const EventsHeaders = once(() =>
  v.object({
    ...UserHeader().entries,
    'last-event-id': maybe(Position(), 'As `after`, from an EventSource that connects again; wins over it'),
  }),
)

/** A number in a query string, and in the document an integer. */
const number = (minimum: number, maximum: number, metadata: Record<string, unknown>) =>
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
  described(
    v.pipe(
      v.picklist(['true'], 'Expected `true`.'),
      v.transform(() => true),
    ),
    what,
  )

export const ListQuery = once(() =>
  v.object({
    user_id: maybe(UpTo(LONGEST_USER), 'Only those of this user'),
    mine: v.optional(
      flag(
        "Only those that were begun with the same key and the same secret in `X-Parley-Visitor`, or by the key's user",
      ),
    ),
    limit: v.optional(limit('Conversations on a page', PAGE)),
    cursor: maybe(UpTo(1_024), '`next_cursor` of the page before'),
    q: maybe(
      Text(LONGEST_SEARCH),
      'Words that a question and its answer contain, or begin with. The latest 5,000 turns that match are looked at',
    ),
    rating: maybe(
      v.picklist(['up', 'down'], 'Expected `up` or `down`.'),
      'Only those with an answer that is rated so',
    ),
    unanswered: v.optional(flag('Only those with an answer that cites nothing and called no tool')),
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
    title: Said(LONGEST_TITLE, 'a title'),
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
      score: maybe(Integer(1, 5), 'Where there is no `rating`, 4 and 5 count as `up`, 1 and 2 as `down`'),
      comment: v.optional(UpTo(LONGEST_COMMENT)),
      reasons: maybe(
        v.pipe(v.array(Text(LONGEST_REASON)), v.maxLength(MOST_REASONS)),
        'Words of your own, such as `wrong` or `slow`',
      ),
    }),
    v.check(
      ({ rating, score, comment = '' }) =>
        rating !== undefined || score !== undefined || comment.trim() !== '',
      'Give a `rating`, a `score` or a `comment`.',
    ),
  ),
)
export const UserPath = once(() => v.object({ id: Text(LONGEST_USER) }))

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
    key: maybe(UpTo(LONGEST_ID), 'Only of this key: its id, or `admin`'),
    model: maybe(Id(), 'Only of this conversation model'),
    limit: v.optional(number(1, MOST_USAGE, { default: MOST_USAGE, description: 'Rows in the answer' })),
    offset: v.optional(number(0, FURTHEST_ROW, { default: 0, description: 'Rows to leave out' })),
  }),
)

export const ReconcileQuery = once(() =>
  v.object({
    collection: described(CollectionName(), 'The one whose vectors are compared'),
    after: maybe(UpTo(LONGEST_ID), '`after` of the last answer'),
  }),
)

// =============================================================================
// Sources.

const LONGEST_URL = 2_048
const WEEK = 7 * 24 * 60
const SHORTEST = 5
/** A page and what is known of it takes some 200 bytes of a row of D1. */
const MOST_PAGES = 5_000

const SourceName = once(() =>
  Matching(/^[a-zA-Z0-9._-]{1,128}$/, 'Expected 1 to 128 letters, digits, dots, hyphens and underscores.'),
)

export const SourcePath = once(() => v.object({ name: SourceName() }))

export const SourceBody = once(() =>
  v.strictObject({
    url: described(
      Url(LONGEST_URL, 'Expected the address of a website, a bucket or an archive.'),
      'Where the site begins: pages below it are read, those of its sitemaps, else those that links lead to. Or `r2://NAME/FOLDER/` of the bucket that is bound as BUCKET_NAME, or a Git archive (`.tar.gz`, `.tgz`), with `#FOLDER` for a part of it',
    ),
    base_url: maybe(
      v.pipe(
        v.string(),
        v.maxLength(LONGEST_URL),
        v.regex(/^https?:\/\/\S+$/, 'Expected the address of a website.'),
      ),
      'Where the files of a bucket or an archive are read on the web. Those of GitHub and GitLab have the pages of their repository without it',
    ),
    collection: described(CollectionName(), 'It is made where there is none'),
    every_minutes: usually(
      Integer(SHORTEST, 4 * WEEK),
      'From the beginning of a run to that of the next',
      1_440,
    ),
    prune: usually(
      v.boolean(),
      'Whether the documents of a page that answers 404 or 410, or of a file that is gone, are removed',
      false,
    ),
    max_pages: usually(Integer(1, MOST_PAGES), 'More are not read', 1_000),
    embedding: maybe(v.pipe(v.string(), v.minLength(1)), 'Makes the vectors, for a collection that is made'),
  }),
)

// =============================================================================
// Backup and restore.

export const BackupPath = once(() => v.object({ kind: v.picklist(BACKUP_KINDS) }))

export const BackupQuery = once(() =>
  v.object({
    after: maybe(UpTo(LONGEST_POSITION), '`next` of the last answer'),
  }),
)

export const BackupDocumentsPath = once(() => v.object({ collection: CollectionName() }))

export const BackupDocumentsQuery = once(() =>
  v.object({
    after: maybe(
      v.pipe(v.string(), v.regex(/^\d{1,15}$/, 'Expected `next` of an earlier answer.'), v.transform(Number)),
      '`next` of the last answer',
    ),
  }),
)

/** An id has up to 512 characters, and a position up to three ids as JSON. */
const LONGEST_POSITION = 4_096
const MOST_ROWS = 500

export const Restore = once(() =>
  v.strictObject({
    rows: described(
      v.pipe(
        v.array(v.record(v.string(), v.union([v.string(), v.number(), v.null()]))),
        v.maxLength(MOST_ROWS),
      ),
      'Rows of this kind, as `GET /operations/backup/{kind}` gave them',
    ),
  }),
)

// =============================================================================
// Assistants, and their tools.

const LONGEST_PROMPT = 100_000
const MOST_OFFERED = 20
const LONGEST_OFFERED = 500

const FieldName = once(() => Text(256))

export const ToolName = once(() =>
  Matching(
    /^[a-z][a-z0-9_]{0,31}$/,
    'Expected up to 32 lower-case letters, digits and underscores, a letter first.',
  ),
)
/** Tools that are not stored (tools/tool.ts). */
const BUILT_IN_TOOLS = ['search', 'document'] as const

export const AssistantName = once(() =>
  Matching(/^[a-z0-9-]{1,64}$/, 'Expected 1 to 64 lower-case letters, digits and hyphens.'),
)

export const AssistantPath = once(() => v.object({ name: AssistantName() }))

/** The name in a question's path. An impossible name is an unknown assistant, not an invalid request. */
export const AskedAssistantPath = once(() => v.object({ assistant: v.string() }))

/** Documents that are found while somebody types: where no number is given, and at most. */
const [USUALLY_FOUND, MOST_FOUND] = [6, 20]

/** What is being typed. */
export const FindQuery = once(() =>
  v.object({
    q: described(Text(LONGEST_OFFERED), 'What is looked for'),
    limit: v.optional(
      number(1, MOST_FOUND, { default: USUALLY_FOUND, description: 'Documents to find' }),
      String(USUALLY_FOUND),
    ),
  }),
)

/** A conversation with it. */
export const HandoverPath = once(() => v.object({ assistant: v.string(), id: v.string() }))

const TimeOfDay = once(() =>
  Matching(/^(?:[01]\d|2[0-3]):[0-5]\d$|^24:00$/, 'Expected a time such as `09:00`.'),
)

export const assistantEntries = once(() => ({
  model: described(Id(), 'Id of the conversation model'),
  ...searched(),
  system_prompt: maybe(
    UpTo(LONGEST_PROMPT),
    "In the place of the model's own. Absent, where the model has none: instructions to answer from the documents alone",
  ),
  questions: usually(
    v.pipe(v.array(Text(LONGEST_OFFERED)), v.maxLength(MOST_OFFERED)),
    'Questions that a page can offer before anything was asked',
    [],
  ),
  overrides: usually(v.array(v.picklist(OVERRIDES)), 'What a request may change', [...SAFE_OVERRIDES]),
  allowed_origins: maybe(
    v.pipe(
      v.array(
        Matching(
          ORIGIN_PATTERN,
          'Expected an origin such as `https://shop.example` or `https://*.shop.example`.',
        ),
      ),
      v.minLength(1),
      v.maxLength(MOST_ORIGINS),
    ),
    'Origins whose pages may ask it. Absent: every origin',
  ),
  citation_field: maybe(
    FieldName(),
    'The field with the name by which answers cite a document. Absent: its id and `.txt`',
  ),
  title_field: maybe(FieldName(), "The field with a source's title"),
  url_field: maybe(FieldName(), "The field with a source's address"),
  category_field: usually(
    FieldName(),
    'The field that `include_category` and `exclude_category` are about',
    'category',
  ),
  followups: usually(
    v.boolean(),
    'Whether next questions are suggested where the request does not say',
    false,
  ),
  followup_style: usually(
    v.picklist(['list', 'inline']),
    'Beside the answer, or in its text too, as `<<Question?>>`',
    'list',
  ),
  attachments: maybe(
    v.boolean(),
    'Whether questions may bring text files. Absent: on the AI Chat Protocol alone',
  ),
  search: maybe(
    v.boolean(),
    'Whether its pages may search while somebody types, which no budget limits. Absent: `false`',
  ),
  tools: maybe(
    v.pipe(v.array(v.union([v.picklist(BUILT_IN_TOOLS), ToolName()])), v.maxLength(32)),
    'What its model may call: `search` (its documents, again), `document` (one of them, whole), and names of stored tools. Absent: nothing',
  ),
  retrieval: maybe(
    v.picklist(['plain', 'agentic']),
    '`agentic`: the model may ask for further searches, as if `search` stood in `tools`. Absent: `plain`',
  ),
  minimum_support: maybe(
    v.pipe(v.number(), v.minValue(0), v.maxValue(1)),
    "The share of an answer's sentences that its documents have to support, where a language model writes it. Absent: any",
  ),
  below_support: maybe(
    v.picklist(['warn', 'withhold']),
    'What becomes of an answer below `minimum_support`: it ends with a warning, or is withheld. Absent: `warn`',
  ),
  handover: maybe(
    v.pipe(
      v.strictObject({
        url: maybe(
          v.pipe(
            v.string(),
            v.maxLength(2_000),
            v.regex(
              /^(?:https:\/\/|mailto:|tel:)[^\s<>"\\]+$/,
              'Expected an address that begins with `https://`, `mailto:` or `tel:`.',
            ),
          ),
          'Opened by the button',
        ),
        webhook: maybe(
          Url(2_000),
          'Gets what the form says, with the conversation. Its host has to be among ALLOWED_HOSTS',
        ),
        after: maybe(
          Integer(1, 10),
          'Answers declined in a row after which it is offered. Absent: the button alone',
        ),
        hours: maybe(
          v.pipe(
            v.strictObject({
              days: v.pipe(v.array(v.picklist(DAYS)), v.minLength(1)),
              from: TimeOfDay(),
              to: TimeOfDay(),
              time_zone: v.pipe(v.string(), v.check(isTimeZone, 'Expected a zone such as `Europe/Berlin`.')),
            }),
            v.check(({ from, to }) => from < to, '`to` has to be later than `from`.'),
          ),
          'When people are there. Absent: always',
        ),
        outside: maybe(Text(LONGEST_OFFERED), 'What is said outside of these hours'),
      }),
      v.check(
        ({ url, webhook }) => (url === undefined) !== (webhook === undefined),
        'Give either `url` or `webhook`.',
      ),
    ),
    'How a visitor reaches people',
  ),
  strict: usually(
    v.boolean(),
    'Whether what is not understood or not allowed is refused rather than passed over with a note',
    false,
  ),
}))

/** What a person says, and who. */
export const Reply = once(() =>
  v.strictObject({
    author: described(Said(100, 'a name'), 'The name that is shown'),
    message: Said(10_000, 'a message'),
  }),
)

/** Who asks for people, and what for. */
export const HandoverBody = once(() =>
  v.strictObject({
    contact: described(
      Said(320, 'an address or a number'),
      'How to reach whoever asks: an address or a number',
    ),
    message: usually(UpTo(4_000), 'What they want', ''),
  }),
)

export const ToolPath = once(() =>
  v.object({
    name: v.pipe(
      ToolName(),
      v.check((name) => !(BUILT_IN_TOOLS as readonly string[]).includes(name), 'This tool is built in.'),
    ),
  }),
)

const ARGUMENT = '`$' + '{parameters.NAME}`'
const Address = once(() => UpTo(2_000))
const PARAMETERS_WHAT = 'The JSON Schema of its arguments: an object. Absent: it takes none'

export const toolEntries = once(() => ({
  title: maybe(Text(100), 'What it does, for visitors: `Book a table`. Absent: its name'),
  description: maybe(Text(2_000), 'What it does and when to call it, for the model. Not of `mcp`'),
  parameters: maybe(v.record(v.string(), v.unknown()), PARAMETERS_WHAT),
  leave: usually(
    v.picklist(['each', 'once', 'never']),
    "When the visitor's leave is asked for: before each call, until it is given in a conversation, or never. `never` is for what changes nothing: a GET, and what an MCP server marks as read-only",
    'each',
  ),
  http: maybe(
    v.strictObject({
      method: v.picklist(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']),
      url: described(
        Address(),
        `With ${ARGUMENT} for an argument, behind its host. The host has to be among ALLOWED_HOSTS`,
      ),
      body: maybe(UpTo(20_000), `JSON with ${ARGUMENT}. Absent: the arguments as an object`),
    }),
    'An HTTP request',
  ),
  mcp: maybe(
    v.strictObject({
      url: described(Address(), 'Of an MCP server (streamable HTTP). Its host has to be among ALLOWED_HOSTS'),
      tools: maybe(Some(Text(128), 32), 'Names of its tools. Absent: all, 32 at most'),
    }),
    'Tools of an MCP server, as it describes them now',
  ),
  page: maybe(
    v.literal(true),
    "A function that the visitor's page runs: the widget's `tools`, `useChat`, AG-UI",
  ),
  headers: maybe(
    v.record(v.string(), UpTo(4_096)),
    'Sent with each request. Their values are sealed, and shown masked',
  ),
}))

export const ToolBody = once(() =>
  v.pipe(
    v.strictObject(toolEntries()),
    v.check(
      ({ http, mcp, page }) => [http, mcp, page].filter(Boolean).length === 1,
      'Give one of `http`, `mcp` and `page`.',
    ),
    v.check(
      ({ mcp, description, parameters }) => (mcp ? !description && !parameters : description !== undefined),
      'Give a `description`; of `mcp` neither that nor `parameters`, which its server gives.',
    ),
    v.check(({ page, headers }) => !(page && headers), 'A tool of the page has no `headers`.'),
    v.check(
      ({ http, leave }) => !http || http.method === 'GET' || leave !== 'never',
      '`leave`: `never` is for what changes nothing. Use `once` or `each` here.',
    ),
  ),
)

export const AssistantBody = once(() =>
  v.pipe(
    v.strictObject(assistantEntries()),
    v.check(
      ({ collections, searches }) => (collections === undefined) !== (searches === undefined),
      'Give either `collections` or `searches`.',
    ),
    v.check(
      ({ minimum_support, below_support }) => below_support === undefined || minimum_support !== undefined,
      'Give `below_support` together with `minimum_support`.',
    ),
    v.metadata({ oneOf: [{ required: ['collections'] }, { required: ['searches'] }] }),
  ),
)

// =============================================================================
// Webhooks.

const WebhookName = once(() =>
  v.pipe(
    AssistantName(),
    v.check((name) => name !== 'deliveries', 'This name is taken by the list of deliveries.'),
  ),
)

export const WebhookPath = once(() => v.object({ name: WebhookName() }))

export const WebhookBody = once(() =>
  v.strictObject({
    url: described(
      Url(2_000, 'Expected an address.'),
      'Where messages are posted. Its host has to be among ALLOWED_HOSTS',
    ),
    events: described(v.pipe(v.array(v.picklist(EVENTS)), v.minLength(1)), 'What it is told of'),
    new_secret: usually(v.boolean(), 'Whether a webhook that is stored already gets another secret', false),
  }),
)

export const DeliveryPath = once(() => v.object({ id: v.string() }))

export const DeliveriesQuery = once(() =>
  v.object({
    limit: v.optional(limit('Messages to list', PAGE), String(PAGE)),
    before: maybe(v.string(), 'Id of a message: only earlier ones'),
  }),
)
