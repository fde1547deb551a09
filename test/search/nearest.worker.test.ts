import { beforeAll, describe, expect, it } from 'vitest'
import type { SearchParameters, SearchResult } from '../../src/search/types'
import { idsOf, makeCollection, refusal, type TestCollection } from './make-collection'

let points: TestCollection

// Directions in the plane: the angle between two is their distance.
const at = (degrees: number): number[] => {
  const radians = (degrees * Math.PI) / 180
  return [Math.cos(radians), Math.sin(radians)]
}

beforeAll(async () => {
  points = await makeCollection(
    [
      { name: 'title', type: 'string' },
      { name: 'group', type: 'string', facet: true },
      { name: 'direction', type: 'float[]', num_dim: 2 },
    ],
    [
      { id: 'east', title: 'east wind', group: 'a', direction: at(0) },
      { id: 'north', title: 'north north wind', group: 'b', direction: at(90) },
      { id: 'west', title: 'west', group: 'a', direction: at(180) },
      { id: 'northeast', title: 'calm', group: 'b', direction: at(45) },
    ],
  )
})

const search = (params: SearchParameters): Promise<SearchResult> => points.search(params)

describe('vector search', () => {
  it('finds as many as are asked for, nearest first', async () => {
    const result = await search({ q: '*', vector_query: 'direction:([1, 0.1], k: 3)' })
    expect(idsOf(result)).toEqual(['east', 'northeast', 'north'])
    expect(result.found).toBe(3)
    const [first] = result.hits!
    expect(first!.vector_distance).toBeGreaterThan(0)
    expect(first!.vector_distance).toBeLessThan(0.01)
    expect(first).not.toHaveProperty('text_match')
    expect(first).not.toHaveProperty('hybrid_search_info')
  })

  it('takes a page of neighbours where it is not told how many', async () => {
    const params = { q: '*', vector_query: 'direction:([1, 0])', per_page: '2' }
    expect((await search(params)).found).toBe(2)
    const second = await search({ ...params, page: '2' })
    expect([second.found, idsOf(second)]).toEqual([4, ['north', 'west']])
  })

  it('keeps to the filter and to the distance', async () => {
    const vector = { q: '*', vector_query: 'direction:([1, 0])' }
    expect(idsOf(await search({ ...vector, filter_by: 'group:=b' }))).toEqual(['northeast', 'north'])
    expect(
      idsOf(await search({ q: '*', vector_query: 'direction:([1,0], distance_threshold: 0.5)' })),
    ).toEqual(['east', 'northeast'])
    expect(idsOf(await search({ ...vector, hidden_hits: 'east' }))).toEqual(['northeast', 'north', 'west'])
  })

  it('puts neighbours into buckets, the nearest in the first', async () => {
    const sorted = async (key: string) => {
      const found = await search({
        q: '*',
        vector_query: 'direction:([1, 0.1], k: 4)',
        sort_by: `${key}, _seq_id:asc`,
      })
      return idsOf(found)
    }
    const nearest = ['east', 'northeast', 'north', 'west']
    expect(await sorted('_vector_distance:asc')).toEqual(nearest)
    expect(await sorted('_vector_distance(buckets: 4):asc')).toEqual(nearest)
    expect(await sorted('_vector_distance(buckets: 2):asc')).toEqual(['east', 'northeast', 'north', 'west'])
    expect(await sorted('_vector_distance(buckets: 2):desc')).toEqual(['north', 'west', 'east', 'northeast'])
    expect(await sorted('_vector_distance(buckets: 1):asc')).toEqual(['east', 'north', 'west', 'northeast'])
    expect(await sorted('_vector_distance(bucket_size: 3):asc')).toEqual([
      'east',
      'north',
      'northeast',
      'west',
    ])
  })

  it('asks for what is like a document, without that document', async () => {
    expect(idsOf(await search({ q: '*', vector_query: 'direction:([], id: east, k: 2)' }))).toEqual([
      'northeast',
      'north',
    ])
    const filtered = { filter_by: 'group:=a' }
    expect(idsOf(await search({ q: '*', vector_query: 'direction:([], id: east)', ...filtered }))).toEqual([
      'west',
    ])
  })

  it('counts facets over the neighbours and sorts them otherwise', async () => {
    const result = await search({
      q: '*',
      vector_query: 'direction:([1, 0], k: 3)',
      facet_by: 'group',
      sort_by: '_vector_distance:desc',
    })
    expect(idsOf(result)).toEqual(['north', 'northeast', 'east'])
    expect(result.facet_counts[0]!.counts.map(({ value, count }) => [value, count])).toEqual([
      ['b', 2],
      ['a', 1],
    ])
  })

  it.each<[SearchParameters, string]>([
    [{ vector_query: 'direction' }, 'Malformed vector query string: `:` is missing.'],
    [
      { vector_query: 'direction([1,0])' },
      'Malformed vector query string: `:` is missing after the vector field name.',
    ],
    [{ vector_query: 'direction:[1,0]' }, 'Malformed vector query string.'],
    [{ vector_query: 'direction:([1,0]' }, 'Malformed vector query string.'],
    [{ vector_query: 'direction:([1,0], k 1)' }, 'Malformed vector query string.'],
    [
      { vector_query: 'direction:([1,x])' },
      'Malformed vector query string: one of the vector values is not a float.',
    ],
    [
      { vector_query: 'direction:([])' },
      'When a vector query value is empty, an `id` parameter must be present.',
    ],
    [{ vector_query: 'direction:([], id: nope)' }, 'Document id referenced in vector query is not found.'],
    [
      { vector_query: 'direction:([1,0], k: x)' },
      'Malformed vector query string: `k` parameter must be an integer.',
    ],
    [
      { vector_query: 'direction:([1,0], k: 10001)' },
      'Malformed vector query string: `k` parameter takes at most 10000 neighbours.',
    ],
    [
      { vector_query: 'direction:([1,0], distance_threshold: 3)' },
      'Malformed vector query string: `distance_threshold` parameter must be a float between 0.0-2.0.',
    ],
    [
      { vector_query: 'direction:([1,0], alpha: x)' },
      'Malformed vector query string: `alpha` parameter must be a float between 0.0-1.0.',
    ],
    [{ vector_query: 'nope:([1,0])' }, 'Field `nope` does not have a vector query index.'],
    [{ vector_query: 'direction:([1])' }, 'Query field `direction` must have 2 dimensions.'],
    [
      { q: 'x', query_by: 'direction' },
      'Vector field `direction` is not an auto-embedding field, do not use `query_by` with it, use `vector_query` instead.',
    ],
    [
      { q: 'x', query_by: 'title', vector_query: 'direction:([], k: 4)' },
      'Vector query could not find any embedded fields.',
    ],
  ])('%j is refused', async (params, message) => {
    expect(await refusal(points, { q: '*', ...params })).toBe(`400 ${message}`)
  })
})

describe('hybrid search', () => {
  const fused = (result: SearchResult) =>
    result.hits!.map(({ document, hybrid_search_info }) => [
      document.id,
      hybrid_search_info!.rank_fusion_score,
    ])

  it('fuses ranks', async () => {
    // Text: north (twice the word), then nothing; vectors: northeast, north, east, west.
    const result = await search({ q: 'north', query_by: 'title', vector_query: 'direction:([1, 1.1])' })
    expect(fused(result)).toEqual([
      ['north', 0.85],
      ['northeast', 0.3],
      ['east', 0.1],
      ['west', 0.075],
    ])
    expect(result.found).toBe(4)
    const [text, vector] = result.hits!
    expect(text!.text_match).toBeGreaterThan(0)
    expect(vector).toMatchObject({ text_match: 0, highlight: {} })
    expect(vector!.vector_distance).toBeGreaterThan(0)
  })

  it('gives 1 to what is first on both sides, and 1 - alpha to what only the words found', async () => {
    const result = await search({
      q: 'wind',
      query_by: 'title',
      vector_query: 'direction:([1, 0], distance_threshold: 0.1)',
    })
    expect(fused(result)).toEqual([
      ['east', 1],
      ['north', 0.35],
    ])
    expect(result.hits![1]).not.toHaveProperty('vector_distance')
    const alone = await search({
      q: 'west',
      query_by: 'title',
      vector_query: 'direction:([1, 0], distance_threshold: 0.1)',
    })
    expect(fused(alone)).toEqual([
      ['west', 0.7],
      ['east', 0.3],
    ])
  })

  it('weighs by alpha, keeps to the filter and sorts otherwise', async () => {
    const params = { q: 'west', query_by: 'title', vector_query: 'direction:([1, 0], alpha: 0.9, k: 2)' }
    expect(fused(await search(params))).toEqual([
      ['east', 0.9],
      ['northeast', 0.45],
      ['west', 0.1],
    ])
    expect(idsOf(await search({ ...params, filter_by: 'group:=a' }))).toEqual(['east', 'west'])
    expect(idsOf(await search({ ...params, sort_by: '_vector_distance:desc' }))).toEqual([
      'northeast',
      'east',
      'west',
    ])
    expect(idsOf(await search({ ...params, sort_by: '_text_match:asc' }))).toEqual([
      'west',
      'northeast',
      'east',
    ])
  })

  it('gives equal text scores one rank', async () => {
    const twins = await makeCollection(
      [
        { name: 'title', type: 'string' },
        { name: 'v', type: 'float[]', num_dim: 2 },
      ],
      [
        { id: '0', title: 'same words', v: at(10) },
        { id: '1', title: 'same words', v: at(20) },
        { id: '2', title: 'same words and more of them', v: at(30) },
      ],
    )
    const result = await twins.search({ q: 'words', query_by: 'title', vector_query: 'v:([1, 0], k: 2)' })
    expect(fused(result)).toEqual([
      ['0', 1],
      ['1', 0.85],
      ['2', 0.35],
    ])
  })

  it('reranks: both sides for every hit', async () => {
    const result = await search({
      q: 'west wind',
      query_by: 'title',
      vector_query: 'direction:([1, 0], k: 1)',
      rerank_hybrid_matches: 'true',
      drop_tokens_threshold: '0',
    })
    const east = result.hits!.find(({ document }) => document.id === 'east')!
    expect(east.text_match).toBeGreaterThan(0)
    const both = await search({
      q: 'west',
      query_by: 'title',
      vector_query: 'direction:([1, 0], k: 1)',
      rerank_hybrid_matches: 'true',
    })
    const west = both.hits!.find(({ document }) => document.id === 'west')!
    expect(west.vector_distance).toBeCloseTo(2, 5)
  })
})

describe('score fusion', () => {
  const wind = { query_by: 'title', drop_tokens_threshold: '1000', prefix: 'false', fusion: 'score' }
  const fused = (result: SearchResult) =>
    new Map(
      result.hits!.map(({ document, hybrid_search_info }) => [
        document.id,
        hybrid_search_info!.rank_fusion_score,
      ]),
    )

  it('adds what the words found of the question to how near the meaning is', async () => {
    const result = await search({ ...wind, q: 'west wind', vector_query: 'direction:([1, 0], alpha: 0.5)' })
    expect(result.found).toBe(4)
    const scores = fused(result)
    // No word, 45 degrees: half of the cosine.
    expect(scores.get('northeast')).toBeCloseTo(0.5 * Math.cos(Math.PI / 4), 5)
    // At its opposite, and so by words alone.
    expect(scores.get('west')).toBeGreaterThan(0)
    expect(scores.get('west')).toBeLessThan(0.5)
    expect(scores.get('east')).toBeGreaterThan(0.5)
    expect(idsOf(result)[0]).toBe('east')
  })

  it('is decided by meaning where the words say nothing', async () => {
    const stopwords = { ...wind, q: 'what is it about', vector_query: 'direction:([0, 1])' }
    expect(idsOf(await search(stopwords))).toEqual(['north', 'northeast', 'west', 'east'])
  })

  it('goes by what was said before, where that was given', async () => {
    const points = { ...wind, q: 'wind', vector_query: 'direction:([0, 1], k: 1, alpha: 0)' }
    expect(idsOf(await search({ ...points, context_q: 'and the west?' }))).toContain('west')
    expect(idsOf(await search(points))).not.toContain('west')
    // The same by words alone, and not beyond the filter or what the question excludes.
    const { vector_query: _, ...words } = points
    expect(idsOf(await search({ ...words, context_q: 'and the west?' }))).toContain('west')
    const filtered = await search({ ...words, context_q: 'and the west?', filter_by: 'group:=b' })
    expect(idsOf(filtered)).toEqual(['north'])
    expect(filtered.found).toBe(1)
    const excluding = { ...words, q: 'wind -north', context_q: 'the north?' }
    expect(idsOf(await search(excluding))).toEqual(['east'])
    expect(idsOf(await search({ ...words, q: 'why', context_q: 'west' }))).toEqual(['west'])
  })

  it('leaves a plain search to Typesense', async () => {
    const plain = { q: 'north', query_by: 'title', vector_query: 'direction:([1, 1.1])' }
    const ranks = fused(await search(plain))
    expect(ranks.get('north')).toBe(0.85)
    expect(fused(await search({ ...plain, fusion: 'rank' }))).toEqual(ranks)
  })
})

describe('search with an embedder', () => {
  let texts: TestCollection
  beforeAll(async () => {
    texts = await makeCollection(
      [
        { name: 'title', type: 'string' },
        {
          name: 'embedding',
          type: 'float[]',
          embed: { from: ['title'], model_config: { model_name: 'ts/e5-small' } },
        },
      ],
      Array.from({ length: 30 }, (_, index) => ({
        id: String(index),
        title: `text number ${index} about geese`,
      })),
    )
  })

  it('by meaning alone finds a page of neighbours', async () => {
    const result = await texts.search({ q: 'text number 7 about geese', query_by: 'embedding' })
    expect(result.found).toBe(10)
    expect(result.hits![0]!.document.id).toBe('7')
    expect(result.hits![0]!.document).toHaveProperty('embedding')
    const distances = result.hits!.map(({ vector_distance }) => vector_distance!)
    expect(distances).toEqual([...distances].sort((a, b) => a - b))
  })

  it('fuses words and meaning, prefix or not', async () => {
    const params = { q: 'number 7', query_by: 'title,embedding', exclude_fields: 'embedding' }
    const result = await texts.search(params)
    expect(result.found).toBe(30)
    expect(result.hits![0]!.document).toEqual({ id: '7', title: 'text number 7 about geese' })
    expect(result.hits![0]!.hybrid_search_info!.rank_fusion_score).toBeGreaterThanOrEqual(0.7)
  })

  it('ignores the embedding for *', async () => {
    const result = await texts.search({ q: '*', query_by: 'embedding' })
    expect([result.found, result.hits![0]!.vector_distance]).toEqual([30, undefined])
  })

  it('embeds other texts than the query', async () => {
    const result = await texts.search({
      q: '*',
      vector_query: 'embedding:([], queries: [text number 3 about geese, text number 3 about geese], k: 1)',
    })
    expect(idsOf(result)).toEqual(['3'])
  })
})
