/** Schemas of requests that manage assistants. Like schemas.ts, this file imports nothing of the Worker. */
import * as v from 'valibot'
import { once } from '../../lib/once.ts'
import { MOST_ORIGINS, ORIGIN_PATTERN } from '../../lib/origins.ts'
import { OVERRIDES, SAFE_OVERRIDES } from '../../registry/overrides.ts'
import { CollectionName, Id, MOST_SEARCHES, number, Search } from './schemas.ts'

const LONGEST_PROMPT = 100_000
const MOST_QUESTIONS = 20
const LONGEST_QUESTION = 500

const FieldName = once(() => v.pipe(v.string(), v.minLength(1), v.maxLength(256)))

export const AssistantName = once(() =>
  v.pipe(
    v.string(),
    v.regex(/^[a-z0-9-]{1,64}$/, 'Expected 1 to 64 lower-case letters, digits and hyphens.'),
  ),
)

export const AssistantPath = once(() => v.object({ name: AssistantName() }))

/** The name in a question's path. An impossible name is an unknown assistant, not an invalid request. */
export const AskedAssistantPath = once(() => v.object({ assistant: v.string() }))

/** Documents that are found while somebody types: where no number is given, and at most. */
const [USUALLY_FOUND, MOST_FOUND] = [6, 20]

/** What is being typed. */
export const FindQuery = once(() =>
  v.object({
    q: v.pipe(v.string(), v.minLength(1), v.maxLength(LONGEST_QUESTION), v.description('What is looked for')),
    limit: v.optional(
      number(1, MOST_FOUND, { default: USUALLY_FOUND, description: 'Documents to find' }),
      String(USUALLY_FOUND),
    ),
  }),
)

/** A conversation with it. */
export const HandoverPath = once(() => v.object({ assistant: v.string(), id: v.string() }))

const described = <S extends v.BaseSchema<unknown, unknown, v.BaseIssue<unknown>>>(
  schema: S,
  description: string,
) => v.pipe(schema, v.description(description))

export const assistantEntries = once(() => ({
  model: described(Id(), 'Id of the conversation model'),
  collections: v.optional(
    described(
      v.pipe(v.array(CollectionName()), v.minLength(1), v.maxLength(MOST_SEARCHES)),
      'Collections to search with what they have: all indexed text, and vectors where there are any',
    ),
  ),
  searches: v.optional(
    described(
      v.pipe(v.array(Search()), v.minLength(1), v.maxLength(MOST_SEARCHES)),
      'Searches with parameters of their own, in place of `collections`',
    ),
  ),
  system_prompt: v.optional(
    described(
      v.pipe(v.string(), v.maxLength(LONGEST_PROMPT)),
      "In the place of the model's own. Absent, where the model has none: instructions to answer from the documents alone",
    ),
  ),
  questions: v.optional(
    described(
      v.pipe(
        v.array(v.pipe(v.string(), v.minLength(1), v.maxLength(LONGEST_QUESTION))),
        v.maxLength(MOST_QUESTIONS),
      ),
      'Questions that a page can offer before anything was asked',
    ),
    [],
  ),
  overrides: v.optional(described(v.array(v.picklist(OVERRIDES)), 'What a request may change'), [
    ...SAFE_OVERRIDES,
  ]),
  allowed_origins: v.optional(
    described(
      v.pipe(
        v.array(
          v.pipe(
            v.string(),
            v.regex(
              ORIGIN_PATTERN,
              'Expected an origin such as `https://shop.example` or `https://*.shop.example`.',
            ),
          ),
        ),
        v.minLength(1),
        v.maxLength(MOST_ORIGINS),
      ),
      'Origins whose pages may ask it. Absent: every origin',
    ),
  ),
  citation_field: v.optional(
    described(
      FieldName(),
      'The field with the name by which answers cite a document. Absent: its id and `.txt`',
    ),
  ),
  title_field: v.optional(described(FieldName(), "The field with a source's title")),
  url_field: v.optional(described(FieldName(), "The field with a source's address")),
  category_field: v.optional(
    described(FieldName(), 'The field that `include_category` and `exclude_category` are about'),
    'category',
  ),
  followups: v.optional(
    described(v.boolean(), 'Whether next questions are suggested where the request does not say'),
    false,
  ),
  followup_style: v.optional(
    described(v.picklist(['list', 'inline']), 'Beside the answer, or in its text too, as `<<Question?>>`'),
    'list',
  ),
  attachments: v.optional(
    described(v.boolean(), 'Whether questions may bring text files. Absent: on the AI Chat Protocol alone'),
  ),
  search: v.optional(
    described(
      v.boolean(),
      'Whether its pages may search while somebody types, which no budget limits. Absent: `false`',
    ),
  ),
  retrieval: v.optional(
    described(
      v.picklist(['plain', 'agentic']),
      'Whether the model may ask for further searches: it splits a question, and asks once more for what is missing. Absent: `plain`',
    ),
  ),
  minimum_support: v.optional(
    described(
      v.pipe(v.number(), v.minValue(0), v.maxValue(1)),
      "The share of an answer's sentences that its documents have to support, where a language model writes it. Absent: any",
    ),
  ),
  below_support: v.optional(
    described(
      v.picklist(['warn', 'withhold']),
      'What becomes of an answer below `minimum_support`: it ends with a warning, or is withheld. Absent: `warn`',
    ),
  ),
  handover: v.optional(
    described(
      v.pipe(
        v.strictObject({
          url: v.optional(
            described(
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
          ),
          webhook: v.optional(
            described(
              v.pipe(v.string(), v.maxLength(2_000), v.url()),
              'Gets what the form says, with the conversation. Its host has to be among ALLOWED_HOSTS',
            ),
          ),
          after: v.optional(
            described(
              v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(10)),
              'Answers declined in a row after which it is offered. Absent: the button alone',
            ),
          ),
        }),
        v.check(
          ({ url, webhook }) => (url === undefined) !== (webhook === undefined),
          'Give either `url` or `webhook`.',
        ),
      ),
      'How a visitor reaches people',
    ),
  ),
  strict: v.optional(
    described(
      v.boolean(),
      'Whether what is not understood or not allowed is refused rather than passed over with a note',
    ),
    false,
  ),
}))

/** Who asks for people, and what for. */
export const HandoverBody = once(() =>
  v.strictObject({
    contact: described(
      v.pipe(v.string(), v.regex(/\S/, 'Expected an address or a number.'), v.maxLength(320)),
      'How to reach whoever asks: an address or a number',
    ),
    message: v.optional(described(v.pipe(v.string(), v.maxLength(4_000)), 'What they want'), ''),
  }),
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
