/** Schemas of requests about question sets. As in schemas.ts, nothing of the Worker is imported. */
import * as v from 'valibot'
import { once } from '../../lib/once.ts'
import { CollectionName, described, Id, maybe, Search, Text } from './schemas.ts'

const MOST_SET_QUESTIONS = 200
const LONGEST_SET_QUESTION = 2_000
const LONGEST_ANSWER = 2_000
const MOST_EXPECTED = 20
const MOST_HOURS = 24 * 28

const SetName = once(() =>
  v.pipe(v.string(), v.regex(/^[^/]{1,128}$/, 'Expected 1 to 128 characters, none of them a slash.')),
)

export const SetPath = once(() => v.object({ name: SetName() }))
export const RunPath = once(() => v.object({ name: SetName(), id: v.string() }))

const KnownQuestion = once(() =>
  v.strictObject({
    question: Text(LONGEST_SET_QUESTION),
    relevant: maybe(
      v.pipe(v.array(Text(1_000)), v.maxLength(MOST_EXPECTED)),
      'Ids of documents that answer it, or of pages whose passages do',
    ),
    answer: maybe(
      v.union([Text(LONGEST_ANSWER), v.pipe(v.array(Text(LONGEST_ANSWER)), v.maxLength(MOST_EXPECTED))]),
      'What a right answer says, or several such answers',
    ),
    unanswerable: maybe(v.boolean(), 'Whether no document answers it'),
  }),
)

/** What the body of `POST /conversations` has for one question or conversation, and no set may. */
const NO_PARAMETERS = ['question', 'conversation_id', 'replaces', 'files', 'followups', 'stream', 'user_id']

const Asks = once(() =>
  described(
    v.pipe(
      v.objectWithRest(
        {
          assistant: v.optional(v.string()),
          model: v.optional(Id()),
          collections: v.optional(v.array(CollectionName())),
          searches: v.optional(v.array(Search())),
        },
        v.union([v.string(), v.number(), v.boolean()]),
      ),
      v.check(
        ({ assistant, model, collections, searches }) =>
          assistant === undefined
            ? model !== undefined && (collections === undefined) !== (searches === undefined)
            : model === undefined && collections === undefined && searches === undefined,
        'Give either `assistant`, or `model` with `collections` or `searches`.',
      ),
      v.check(
        (asks) => !NO_PARAMETERS.some((name) => name in asks),
        'Each question is asked by itself: leave out what belongs to one question or conversation.',
      ),
    ),
    'Whom it asks: an `assistant`, or what the body of `POST /conversations` has besides its question',
  ),
)

export const SetBody = once(() =>
  v.strictObject({
    questions: v.pipe(v.array(KnownQuestion()), v.minLength(1), v.maxLength(MOST_SET_QUESTIONS)),
    asks: Asks(),
    every_hours: maybe(
      v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MOST_HOURS)),
      'From the beginning of a run to that of the next. Absent: on request alone',
    ),
    after_import: maybe(v.boolean(), 'Whether it is asked after an import into one of its collections'),
    judge: maybe(Id(), 'Conversation model that judges answers, beside what their words say'),
  }),
)

export const RunBody = once(() =>
  v.strictObject({ asks: maybe(Asks(), 'In the place of what the set asks') }),
)

/** An import ended. */
export const ImportedBody = once(() => v.strictObject({ collection: CollectionName() }))
