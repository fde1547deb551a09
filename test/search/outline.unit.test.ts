import { expect, it } from 'vitest'
import { outlineOf, searchableFields } from '../../src/search/collection/outline'
import { field } from './field'

const embed = { from: ['title'], model_config: { model_name: 'openai/x', api_key: 'sk-secret' } }

const outline = outlineOf({
  name: 'docs',
  fields: [
    field('title', 'string'),
    field('tags', 'string[]'),
    field('hidden', 'string', { index: false }),
    field('year', 'int32'),
    field('first', 'float[]', { embed }),
    field('second', 'float[]', { embed }),
    field('own', 'float[]', { num_dim: 4 }),
  ],
})

it('tells what can be searched, and no credentials', () => {
  expect(outline).toEqual({
    name: 'docs',
    texts: ['title', 'tags'],
    embeddings: ['first', 'second'],
    hashed: [],
    vectors: ['first', 'second', 'own'],
    indexed: ['title', 'tags', 'year', 'first', 'second', 'own'],
  })
  expect(JSON.stringify(outline)).not.toContain('sk-secret')
})

it('searches all text, and one embedding field', () => {
  expect(searchableFields(outline)).toEqual(['first', 'title', 'tags'])
})
