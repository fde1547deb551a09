/** The documented schema of a trace knows every field that a trace can have. The types see to it that none is left out here. */
import { parse } from 'valibot'
import { expect, it } from 'vitest'
import { TurnTrace as Schema } from '../../../src/api/parley/response-schemas'
import type { CallTrace, FailedTrace, HitTrace, SearchTrace } from '../../../src/turn/events'
import type { TurnTrace } from '../../../src/turn/fold'

const hit: Required<HitTrace> = { id: 'a', text_match: 1, vector_distance: 0.5, score: 0.9 }

const search: Required<SearchTrace> = {
  collection: 'c',
  engine: 'typesense',
  params: { q: 'q' },
  found: 1,
  hits: [hit],
  error: { status: 404, message: 'Not found' },
  started: 0,
  took: 1,
}

const failed: Required<FailedTrace> = {
  model: 'openai/a',
  error: 'busy',
  model_id: 'a',
  input_tokens: 1,
  output_tokens: 2,
}

const call: Required<CallTrace> = {
  purpose: 'answer',
  model: 'openai/b',
  model_id: 'b',
  failed: [failed],
  prompt: [{ role: 'user', content: 'q' }],
  text: 'said',
  tools: ['orders'],
  finish_reason: 'stop',
  input_tokens: 1,
  output_tokens: 2,
  estimated: true,
  error: 'broke off',
  started: 0,
  first_token: 1,
  took: 2,
  charged: true,
}

/** Without what OpenSearch's messages say of themselves, which the route leaves out. */
const trace: Required<Omit<TurnTrace, 'message'>> = {
  assistant: 'a',
  question: 'q',
  standalone: 's',
  searches: [search],
  calls: [call],
  followups: ['next?'],
  copy_of: 'c-1',
  cut: [{ collection: 'c', document_id: 'd', passages: 1, of: 2 }],
  steps: [
    {
      passages: [{ collection: 'c', id: 'd', rank: 1, score: 1, text: 't', fields: {} }],
      content: [{ type: 'text', text: 'said' }],
    },
  ],
  shortened: true,
}

it('describes every field', () => {
  expect(parse(Schema, trace)).toEqual(trace)
})
