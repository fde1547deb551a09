import { expect, it } from 'vitest'
import { hiddenFields, outlineOf, searchableFields } from '../../src/search/collection/outline'
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
    field('third', 'float[]', { embed: { ...embed, model_config: { model_name: 'ts/e5-small' } } }),
    field('own', 'float[]', { num_dim: 4 }),
  ],
})

it('tells what can be searched, and no credentials', () => {
  expect(outline).toEqual({
    name: 'docs',
    texts: ['title', 'tags'],
    embeddings: ['first', 'second', 'third'],
    vectors: ['first', 'second', 'third', 'own'],
    indexed: ['title', 'tags', 'year', 'first', 'second', 'third', 'own'],
    called: ['first', 'second'],
  })
  expect(JSON.stringify(outline)).not.toContain('sk-secret')
})

it('searches all text, and one embedding field', () => {
  expect(searchableFields(outline)).toEqual(['first', 'title', 'tags'])
})

it('tells which models are called, whatever their name in the schema', () => {
  const served = (served_by: string) =>
    outlineOf({
      name: 'docs',
      fields: [
        field('vector', 'float[]', {
          embed: { from: ['title'], model_config: { model_name: 'ts/e5-small' }, served_by },
        }),
      ],
    })
  expect(served('cloudflare/@cf/baai/bge-m3').called).toEqual(['vector'])
  expect(served('local/words').called).toBeUndefined()
})

it('neither searches nor shows what an import notes for itself', () => {
  const fields = [
    field('text', 'string'),
    field('vector', 'float[]', { num_dim: 2 }),
    field('parley_source', 'string', { facet: true }),
    field('parley_hash', 'string', { index: false, optional: true }),
  ]
  const imported = outlineOf({ name: 'docs', fields })
  expect(searchableFields(imported)).toEqual(['text'])
  expect(hiddenFields(imported)).toEqual([
    'vector',
    'parley_source',
    'parley_hash',
    'parley_page',
    'parley_part',
  ])
  expect(hiddenFields(outlineOf({ name: 'docs', fields: fields.slice(0, 2) }))).toEqual(['vector'])
})
