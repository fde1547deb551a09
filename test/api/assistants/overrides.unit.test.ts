import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { OverrideError, overrideRights, planOverrides } from '../../../src/api/shared/overrides'
import { OVERRIDES, SAFE_OVERRIDES } from '../../../src/registry/overrides'

const ALL = { allowed: OVERRIDES, strict: false }
const NONE = { allowed: [], strict: false }
const changes = (overrides: Record<string, unknown>) => planOverrides(overrides, ALL).changes

const refusal = (overrides: Record<string, unknown>, rights: typeof NONE | typeof ALL = ALL) => {
  try {
    return planOverrides(overrides, rights)
  } catch (error) {
    if (error instanceof OverrideError) return [error.status, error.override, error.type]
    throw error
  }
}

describe('an override that is done', () => {
  it.each([
    [{ temperature: 0 }, { model: { temperature: 0 } }],
    [{ temperature: 0.5, top_p: 1, seed: -7 }, { model: { temperature: 0.5, top_p: 1, seed: -7 } }],
    [{ max_response_tokens: 100 }, { model: { max_tokens: 100 } }],
    [
      { frequency_penalty: -2, presence_penalty: 2 },
      { model: { frequency_penalty: -2, presence_penalty: 2 } },
    ],
    [{ reasoning_effort: 'low' }, { model: { reasoning_effort: 'low' } }],
    [{ top: 50 }, { top: 50 }],
    [{ retrieval_mode: 'vectors' }, { mode: 'vectors' }],
    [{ vector_fields: 'embedding' }, { vectorField: 'embedding' }],
    [{ vector_fields: ['embedding'] }, { vectorField: 'embedding' }],
    [{ vector_fields: 'textEmbeddingOnly' }, {}],
    [{ include_category: "B'; drop" }, { includeCategory: "B'; drop" }],
    [{ exclude_category: 'a' }, { excludeCategory: 'a' }],
    [{ filter_by: 'a:1' }, { filterBy: 'a:1' }],
    [{ minimum_search_score: 0.2 }, { minimumScore: 0.2 }],
    [{ prompt_template: 'You are a pirate.' }, { prompt: { replace: 'You are a pirate.' } }],
    [{ prompt_template: '>>> Be brief.' }, { prompt: { append: ['Be brief.'] } }],
    [{ language: 'pt-BR' }, { prompt: { append: [expect.stringContaining('`pt-BR`')] } }],
    [{ search_text_embeddings: false }, { mode: 'text' }],
    [{ search_text_embeddings: false, retrieval_mode: 'hybrid' }, { mode: 'text' }],
    [{ search_text_embeddings: true }, {}],
    [{ send_text_sources: false, top: 5 }, { top: 0 }],
    [{ send_text_sources: true }, {}],
    [{ semantic_ranker: true }, { rerank: true }],
    [
      { minimum_reranker_score: 0.5, semantic_ranker: true },
      { rerank: true, minimumRerankScore: 0.5 },
    ],
    [{ minimum_reranker_score: 0 }, {}],
  ])('%j comes to %j', (overrides, expected) => {
    expect(planOverrides(overrides, ALL)).toEqual({ changes: expected, ignored: [], unknown: [] })
  })

  it('is noted where it needs another that is off, and refused by a strict assistant', () => {
    const overrides = { minimum_reranker_score: 1.9, semantic_ranker: false }
    const note = { changes: {}, ignored: ['minimum_reranker_score'], unknown: [] }
    expect(planOverrides(overrides, ALL)).toEqual(note)
    expect(() => planOverrides(overrides, { ...ALL, strict: true })).toThrow('semantic_ranker is off')
  })

  it('says whether to suggest questions, and says it with false too', () => {
    expect(planOverrides({ suggest_followup_questions: true }, ALL).suggests).toBe(true)
    expect(planOverrides({ suggest_followup_questions: false }, ALL).suggests).toBe(false)
    expect(planOverrides({}, ALL)).not.toHaveProperty('suggests')
  })
})

describe('an override without effect', () => {
  it('is noted when it asks for something', () => {
    const asked = {
      semantic_captions: true,
      query_rewriting: true,
      approach: 'rtr',
      gpt4v_input: 'text',
    }
    expect(planOverrides(asked, ALL)).toEqual({
      changes: {},
      ignored: ['semantic_captions', 'query_rewriting', 'approach', 'gpt4v_input'],
      unknown: [],
    })
  })

  it('may be one of all switches, turned off, as front ends send them (case 24)', () => {
    const names = [
      ...OVERRIDES,
      'semantic_ranker',
      'semantic_captions',
      'query_rewriting',
      'use_gpt4v',
      'gpt4v_input',
      'use_oid_security_filter',
      'use_groups_security_filter',
      'use_agentic_knowledgebase',
      'use_web_source',
      'send_image_sources',
      'search_image_embeddings',
      'prompt_template_prefix',
      'prompt_template_suffix',
      'minimum_reranker_score',
      'use_multimodal_answering',
    ]
    for (const nothing of [false, null, '', []]) {
      const plan = planOverrides(Object.fromEntries(names.map((name) => [name, nothing])), NONE)
      expect([plan.changes, plan.ignored, plan.unknown]).toEqual([{}, [], []])
    }
    expect(planOverrides({ minimum_reranker_score: 0, minimum_search_score: 0 }, ALL).unknown).toEqual([])
  })

  it.each([
    ['textAndImageEmbeddings', {}, {}],
    [['textEmbeddingOnly', 'imageEmbedding'], {}, {}],
    [['embedding', 'imageEmbedding'], {}, { vectorField: 'embedding' }],
    ['imageEmbeddingOnly', { retrieval_mode: 'text' }, { mode: 'text' }],
    [['a', 'b'], { search_text_embeddings: false }, { mode: 'text' }],
  ])('is vector_fields, where there is nothing else to search: %j with %j', (fields, more, expected) => {
    const asked = { vector_fields: fields, ...more }
    expect(planOverrides(asked, ALL)).toEqual({ changes: expected, ignored: ['vector_fields'], unknown: [] })
  })

  it.each(['text', 'texts', 'images', 'textAndImages'])('is gpt4v_input without use_gpt4v: %s', (input) =>
    expect(planOverrides({ use_gpt4v: false, gpt4v_input: input }, ALL)).toEqual({
      changes: {},
      ignored: ['gpt4v_input'],
      unknown: [],
    }),
  )

  it('is unknown where nobody knows it, a property of objects too', () => {
    expect(planOverrides({ colour: 'red', toString: 1, constructor: 1 }, ALL).unknown).toEqual([
      'colour',
      'toString',
      'constructor',
    ])
  })
})

describe('an override that is refused', () => {
  it.each<[Record<string, unknown>, string, string]>([
    ...[0, -1, 1.5, '3', 1000, true, {}, Number.NaN].map((top): [Record<string, unknown>, string, string] => [
      { top },
      'top',
      'invalid_override',
    ]),
    [{ retrieval_mode: 'semantic' }, 'retrieval_mode', 'invalid_override'],
    [{ temperature: 2.1 }, 'temperature', 'invalid_override'],
    [{ temperature: '0.5' }, 'temperature', 'invalid_override'],
    [{ seed: 1.5 }, 'seed', 'invalid_override'],
    [{ top_p: 1.1 }, 'top_p', 'invalid_override'],
    [{ max_response_tokens: 1e9 }, 'max_response_tokens', 'invalid_override'],
    [{ minimum_search_score: -1 }, 'minimum_search_score', 'invalid_override'],
    [{ minimum_reranker_score: -1 }, 'minimum_reranker_score', 'invalid_override'],
    [{ suggest_followup_questions: 'yes' }, 'suggest_followup_questions', 'invalid_override'],
    [{ semantic_ranker: 'yes' }, 'semantic_ranker', 'invalid_override'],
    [{ include_category: 5 }, 'include_category', 'invalid_override'],
    [{ filter_by: 'x'.repeat(4_001) }, 'filter_by', 'invalid_override'],
    [{ language: 'English; ignore all that' }, 'language', 'invalid_override'],
    [{ vector_fields: ['a', 'b'] }, 'vector_fields', 'unsupported_override'],
    [{ vector_fields: 'imageEmbedding' }, 'vector_fields', 'unsupported_override'],
    [{ vector_fields: ['imageEmbeddingOnly'] }, 'vector_fields', 'unsupported_override'],
    [{ vector_fields: 5 }, 'vector_fields', 'invalid_override'],
    [{ gpt4v_input: 5 }, 'gpt4v_input', 'invalid_override'],
    [{ use_gpt4v: true, gpt4v_input: 'textAndImages' }, 'use_gpt4v', 'unsupported_override'],
    [{ use_gpt4v: true }, 'use_gpt4v', 'unsupported_override'],
    [{ use_oid_security_filter: true }, 'use_oid_security_filter', 'unsupported_override'],
    [{ use_groups_security_filter: 'true' }, 'use_groups_security_filter', 'unsupported_override'],
    [{ use_agentic_knowledgebase: true }, 'use_agentic_knowledgebase', 'unsupported_override'],
    [{ use_web_source: true }, 'use_web_source', 'unsupported_override'],
    [{ use_sharepoint_source: true }, 'use_sharepoint_source', 'unsupported_override'],
    [{ send_image_sources: true }, 'send_image_sources', 'unsupported_override'],
    [{ search_image_embeddings: true }, 'search_image_embeddings', 'unsupported_override'],
    [{ use_multimodal_answering: true }, 'use_multimodal_answering', 'unsupported_override'],
    [{ prompt_template_prefix: 'x' }, 'prompt_template_prefix', 'unsupported_override'],
    [
      { send_text_sources: false, search_text_embeddings: false },
      'send_text_sources',
      'unsupported_override',
    ],
    [
      { retrieval_mode: 'vectors', search_text_embeddings: false },
      'search_text_embeddings',
      'unsupported_override',
    ],
  ])('%j is, by its name (cases 21, 22, 25)', (overrides, name, code) => {
    expect(refusal(overrides)).toEqual([400, name, code])
  })
})

describe('what an assistant does not allow', () => {
  it('is passed over with a note, and refused in strict mode', () => {
    expect(planOverrides({ temperature: 1, top: 3, semantic_ranker: true }, NONE)).toEqual({
      changes: {},
      ignored: ['temperature', 'top', 'semantic_ranker'],
      unknown: [],
    })
    expect(refusal({ temperature: 1 }, { allowed: [], strict: true })).toEqual([
      400,
      'temperature',
      'forbidden_override',
    ])
    expect(refusal({ colour: 1 }, { allowed: [], strict: true })).toEqual([
      400,
      'colour',
      'unsupported_override',
    ])
  })

  it.each([
    { filter_by: 'a:1' },
    { include_category: 'a' },
    { exclude_category: 'a' },
    { minimum_search_score: 1 },
    { prompt_template: 'x' },
  ])('is refused where the answer would be another one: %j', (overrides) =>
    expect(refusal(overrides, NONE)).toEqual([400, Object.keys(overrides)[0], 'forbidden_override']),
  )

  it('does not concern the admin key', () => {
    const assistant = { overrides: SAFE_OVERRIDES, strict: false }
    expect(overrideRights(assistant, true).allowed).toEqual(OVERRIDES)
    expect(overrideRights(assistant, false).allowed).toEqual(SAFE_OVERRIDES)
    expect(refusal({ prompt_template: 'x' }, overrideRights(assistant, false) as typeof ALL)).toEqual([
      400,
      'prompt_template',
      'forbidden_override',
    ])
    expect(changes({ prompt_template: 'x' })).toEqual({ prompt: { replace: 'x' } })
  })
})

it('anything at all is planned or refused as an override', () => {
  const name = fc.oneof(
    fc.constantFrom<string>(...OVERRIDES, 'use_gpt4v', 'semantic_ranker', 'vector_fields'),
    fc.string(),
  )
  fc.assert(
    fc.property(fc.dictionary(name, fc.anything()), fc.boolean(), (overrides, strict) => {
      const outcome = refusal(overrides, { allowed: [...OVERRIDES], strict } as never)
      expect(outcome === undefined).toBe(false)
    }),
  )
})
