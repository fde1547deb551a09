/** Schemas of what an answer consists of, for those of the responses (response-schemas.ts). */
import * as v from 'valibot'

export const Count = v.pipe(v.number(), v.integer(), v.minValue(0))
export const Milliseconds = v.pipe(v.number(), v.integer(), v.description('Unix time in milliseconds'))

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

export const Cut = v.pipe(
  v.array(
    v.object({
      collection: v.string(),
      document_id: v.string(),
      passages: v.pipe(Count, v.description('Its passages in the prompt; 0: it was left out')),
      of: v.pipe(Count, v.description('The passages that it has')),
    }),
  ),
  v.description('Documents that did not fit into the prompt whole'),
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

/** How far an answer can be relied on. */
export const verdict = {
  declined: v.optional(
    v.pipe(
      v.literal(true),
      v.description(
        'There is no answer: the built-in answerer has none or made small talk, or the assistant withheld it',
      ),
    ),
  ),
  warned: v.optional(
    v.pipe(
      v.literal(true),
      v.description(
        'The built-in answerer is not sure, or the documents support too little. The answer says so',
      ),
    ),
  ),
  support: v.optional(
    v.pipe(
      v.array(
        v.object({
          start: v.pipe(Count, v.description('Place in the answer, in UTF-16 units')),
          end: Count,
          support: v.picklist(['supported', 'partly', 'not_found']),
          missing: v.optional(
            v.pipe(
              v.array(v.string()),
              v.description('Numbers and names of the sentence that the documents lack, the first five'),
            ),
          ),
        }),
      ),
      v.description('Whether the documents support each sentence that a language model wrote'),
    ),
  ),
}
