/** Schemas of responses about question sets, as response-schemas.ts has others. */
import * as v from 'valibot'
import { SetBody } from './question-set-schemas.ts'

const Milliseconds = v.pipe(v.number(), v.integer(), v.description('Unix time in milliseconds'))
const { asks, judge, questions } = SetBody().entries

export const QuestionSet = v.object({
  name: v.string(),
  ...SetBody().entries,
  next_run_at: v.optional(Milliseconds),
  running: v.optional(v.pipe(v.string(), v.description('The run that goes on'))),
  runs: v.pipe(
    v.array(v.object({ id: v.string(), started_at: Milliseconds })),
    v.description('The latest 20, the last one first'),
  ),
})

export const QuestionSets = v.object({ sets: v.array(QuestionSet) })

export const QuestionRun = v.object({
  id: v.string(),
  started_at: Milliseconds,
  ended_at: v.optional(v.pipe(v.number(), v.description('Absent while it goes on'))),
  asks,
  judge,
  questions: v.pipe(questions, v.description('Those of the set when it began')),
  answers: v.pipe(
    v.array(
      v.object({
        answer: v.pipe(v.string(), v.description('The first 2,000 characters')),
        cited: v.pipe(v.array(v.string()), v.description('Ids of the documents that it cites')),
        found: v.pipe(
          v.array(v.array(v.string())),
          v.description('Ids of what each search found, best first'),
        ),
        ms: v.pipe(v.number(), v.description('How long it took, in milliseconds')),
        declined: v.optional(v.boolean()),
        warned: v.optional(v.boolean()),
        usage: v.optional(
          v.object({ model: v.string(), input_tokens: v.number(), output_tokens: v.number() }),
        ),
        conversation_id: v.optional(v.string()),
        turn: v.optional(v.number()),
        error: v.optional(v.pipe(v.string(), v.description('Why there is no answer'))),
        judged: v.optional(
          v.object({ verdict: v.picklist(['right', 'partly', 'wrong']), reason: v.string() }),
        ),
      }),
    ),
    v.description('In the order of the questions, as far as they were asked'),
  ),
})

export const Imported = v.object({
  sets: v.pipe(v.number(), v.integer(), v.description('How many are asked within a minute')),
})
