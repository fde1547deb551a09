/** POST /collections: what is refused, in which words, and what is filled in. */
import { describe, expect, it } from 'vitest'
import { ApiError } from '../../src/errors'
import { maskSecret } from '../../src/lib/mask'
import { parseSchema, summarize } from '../../src/search/schema/schema'

const field = (extra: Record<string, unknown> = {}) => ({ name: 'f', type: 'string', ...extra })
const body = (...fields: unknown[]) => ({ name: 'c', fields })
const embedding = (embed: unknown, extra: Record<string, unknown> = {}) =>
  body(field(), { name: 'e', type: 'float[]', embed, ...extra })
const model = { model_name: 'ts/e5-small' }

const REFUSED: [unknown, string][] = [
  [[], 'Bad JSON.'],
  [5, 'Bad JSON.'],
  [{}, 'Parameter `name` is required.'],
  [{ name: '' }, 'Parameter `name` must be a non-empty string.'],
  [{ name: 5 }, 'Parameter `name` must be a non-empty string.'],
  [{ name: 'c' }, 'Parameter `fields` is required.'],
  [
    { name: 'c', fields: [] },
    'The `fields` value should be an array of objects containing `name`, `type` and optionally, `facet` properties.',
  ],
  [
    { name: 'c', fields: {} },
    'The `fields` value should be an array of objects containing `name`, `type` and optionally, `facet` properties.',
  ],
  [
    body({ name: 'f' }),
    'Wrong format for `fields`. It should be an array of objects containing `name`, `type`, `optional` and `facet` properties.',
  ],
  [
    body('f'),
    'Wrong format for `fields`. It should be an array of objects containing `name`, `type`, `optional` and `facet` properties.',
  ],
  [body(field({ name: '' })), 'Field name cannot be empty.'],
  [body(field({ facet: 'yes' })), 'The `facet` property of the field `f` should be a boolean.'],
  [body(field({ optional: 1 })), 'The `optional` property of the field `f` should be a boolean.'],
  [
    body(field({ type: 'text' })),
    'Field `f` has an invalid data type `text`, see docs for supported data types.',
  ],
  [body(field(), field()), 'There are duplicate field names in the schema.'],
  [
    body(field({ type: 'object' })),
    'Type `object` or `object[]` can be used only when nested fields are enabled by setting` enable_nested_fields` to true.',
  ],
  [
    { ...body(field()), default_sorting_field: 'points' },
    'Default sorting field is defined as `points` but is not found in the schema.',
  ],
  [{ ...body(field()), default_sorting_field: 'f' }, 'Default sorting field `f` is not a sortable type.'],
  [
    { ...body(field()), token_separators: 'x' },
    '`token_separators` should be an array of character symbols.',
  ],
  [
    { ...body(field()), symbols_to_index: ['ab'] },
    '`symbols_to_index` should be an array of character symbols.',
  ],
  [body(field({ num_dim: 4 })), 'Property `num_dim` is only allowed on a float array field.'],
  [
    body({ name: '.*', type: 'auto' }, { name: '.*', type: 'auto' }),
    'There can be only one field named `.*`.',
  ],
  [
    body(field({ embed: { from: ['x'] } })),
    'Fields with the `embed` parameter can only be of type `float[]`.',
  ],
  [embedding('x'), 'Property `embed` must be an object.'],
  [embedding({ model_config: model }), 'Property `embed` must contain a `from` property.'],
  [embedding({ from: 'f', model_config: model }), 'Property `embed.from` must be an array.'],
  [embedding({ from: [], model_config: model }), 'Property `embed.from` must have at least one element.'],
  [embedding({ from: ['f'] }), 'Property `embed.model_config` not found.'],
  [embedding({ from: ['f'], model_config: {} }), 'Property `embed.model_config.model_name`not found'],
  [
    embedding({ from: ['f'], model_config: { model_name: 5 } }),
    'Property `embed.model_config.model_name` must be a string.',
  ],
  [
    embedding({ from: ['nope'], model_config: model }),
    'Property `embed.from` can only refer to string, string array or image (for supported models) fields.',
  ],
]

describe('a schema', () => {
  it.each(REFUSED)('of %j is refused', (request, message) => {
    expect(() => parseSchema(request)).toThrow(new ApiError(400, message))
  })

  it('is filled in with defaults by type', () => {
    const types = ['string', 'int32', 'int64[]', 'bool', 'geopoint', 'auto']
    const { fields } = parseSchema(body(...types.map((type, n) => ({ name: `f${n}`, type }))))
    expect(fields.map(({ sort }) => sort)).toEqual([false, true, false, true, true, false])
    expect(fields.map(({ optional }) => optional)).toEqual([false, false, false, false, false, true])
  })

  it('has no field named id', () => {
    expect(parseSchema(body({ name: 'id', type: 'string' }, field())).fields).toHaveLength(1)
  })

  it('shows vectors with their engine, and no key in clear', () => {
    const config = { model_name: 'openai/x', api_key: 'sk-1234567890' }
    const schema = parseSchema(embedding({ from: ['f'], model_config: config }, { num_dim: 8 }))
    const summary = summarize(schema, 3, 7)
    expect((summary.fields as unknown[])[1]).toMatchObject({
      num_dim: 8,
      vec_dist: 'cosine',
      hnsw_params: { M: 16, ef_construction: 200 },
      embed: { model_config: { api_key: 'sk-12********' } },
    })
    expect(summary).toMatchObject({ num_documents: 3, created_at: 7 })
    expect(summary).not.toHaveProperty('metadata')
    expect(config.api_key).toBe('sk-1234567890')
  })
})

describe('a secret', () => {
  it('shows five characters of a long one and none of a short one', () => {
    expect(maskSecret('sk-1234567890')).toBe('sk-12********')
    expect(maskSecret('abcdef')).toBe('abcde*')
    expect(maskSecret('abcde')).toBe('*'.repeat(11))
    expect(maskSecret('')).toBe('*'.repeat(11))
  })
})
