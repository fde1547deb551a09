/** The functions of sort_by that Typesense documents. */
import { beforeAll, describe, expect, it } from 'vitest'
import { idsOf, makeCollection, refusal, type TestCollection } from './make-collection'

const order = async (collection: TestCollection, sort: string, more = {}): Promise<string[]> =>
  idsOf(await collection.search({ q: '*', sort_by: sort, per_page: '100', ...more }))

describe('functions of a number', () => {
  let things: TestCollection
  beforeAll(async () => {
    things = await makeCollection(
      [
        { name: 'name', type: 'string' },
        { name: 'at', type: 'int64', optional: true },
        { name: 'rating', type: 'float', optional: true },
        { name: 'brand', type: 'string', facet: true, optional: true },
      ],
      [
        ...[0, 1, 2, 3, 4].map((n) => ({
          id: String(n),
          name: 'phone',
          at: 1728383250 + n * 1000,
          rating: n + 0.5,
          brand: n % 2 ? 'nike' : 'some (annoying) value',
        })),
        { id: 'none', name: 'phone' },
      ],
    )
  })

  it.each([
    ['at(origin: 1728386250, func: diff):asc', ['3', '4', '2', '1', '0', 'none']],
    ['at(func:diff, origin: 1728386250):desc', ['0', '1', '4', '2', '3', 'none']],
    ['at(origin: 1728385250, func: gauss, scale: 1000, decay: 0.5):desc', ['2', '3', '1', '4', '0', 'none']],
    ['at(origin: 1728385250, func: exp, scale: 1000):asc', ['4', '0', '3', '1', '2', 'none']],
    [
      'at(origin: 1728385250, func: linear, scale: 500, decay: 0):desc,_seq_id:desc',
      ['2', '4', '3', '1', '0', 'none'],
    ],
    // Within the offset all are equal, and the newest comes first.
    [
      'at(origin: 1728384250, func: gauss, scale: 1000, offset: 1000):desc,_seq_id:desc',
      ['2', '1', '0', '3', '4', 'none'],
    ],
    ['at(origin: 1728384250, func: diff, missing_values: first):asc', ['none', '1', '2', '0', '3', '4']],
    ['rating(origin: 2, func: diff):asc,_seq_id:desc', ['2', '1', '3', '0', '4', 'none']],
    ['at(missing_values: normal):desc', ['4', '3', '2', '1', '0', 'none']],
    ['_eval(brand:nike):desc, at:asc', ['1', '3', '0', '2', '4', 'none']],
    [
      '_eval([(brand:nike && at:>1728385250):3, (brand:`some (anno`*):2]):desc,at:desc',
      ['3', '4', '2', '0', '1', 'none'],
    ],
    ['_eval([(brand:nike):2, (id:none):9, (brand:nike):50]):desc,at:desc', ['none', '3', '1', '4', '2', '0']],
    [
      `_eval([(id:none):9,${Array.from({ length: 60 }, (_, at) => `(id:[none,x${at}]):4`)},(brand:nike):4]):desc,at:desc`,
      ['none', '3', '1', '4', '2', '0'],
    ],
  ])('%s', async (sort, ids) => {
    expect(await order(things, sort)).toEqual(ids)
    expect(await order(things, sort, { q: 'phone', query_by: 'name' })).toEqual(ids)
  })

  it('origins as far away as 64 bits reach', async () => {
    const far = await makeCollection(
      [{ name: 'points', type: 'int64' }],
      [
        { id: 'zero', points: 0 },
        { id: 'one', points: 1_000_000 },
        { id: 'minus', points: -1_000_000 },
      ],
    )
    const least = 'points(origin: -9223372036854775808, func: diff):asc'
    // A distance beyond 64 bits is a double, and doubles that large are 2,048 apart.
    expect(await order(far, least)).toEqual(['minus', 'zero', 'one'])
    expect(await order(far, least.replace('-9', '9').replace('808', '807'))).toEqual(['one', 'zero', 'minus'])
    expect(
      await order(far, 'points(origin: -9223372036854775808, func: exp, scale: 9223372036854775807):desc'),
    ).toHaveLength(3)
  })

  const badBuckets = (name: string) =>
    `400 Invalid value passed for ${name} \`buckets\` or \`bucket_size\` configuration.`
  const scale = '400 sort_by: scale param should be non-zero integer.'
  const mandatory = '400 Bad syntax. origin and scale are mandatory params for decay function linear'
  it.each([
    ['at(origin: 1, scale: 100.4, func: linear)', scale],
    ['at(origin: 1, scale: 0, func: linear, offset: -2)', scale],
    ['at(origin: 1.5, scale: 100, func: linear)', '400 sort_by: origin param should be integer.'],
    ['at(origin: 1, scale: 1, func: linear, offset: -2.5)', '400 sort_by: offset param should be integer.'],
    ['at(origin: 1, func: linear, offset: -2)', mandatory],
    ['at(scale: 100, func: linear)', mandatory],
    ['at(func: diff)', '400 Bad syntax. origin param is mandatory for diff function.'],
    [
      'at(origin: 1, func: linear, scale: -10, decay: 1.4)',
      '400 sort_by: decay param should be float in range [0.0, 1.0].',
    ],
    ['at(origin: 1, func: linear, scale: 1, decay: x)', '400 sort_by: decay param should be float.'],
    ['at(origin: 1, func: expo, scale: 1)', '400 Bad syntax. Not a valid decay function key `expo`.'],
    ['at(origin: 1)', '400 Bad syntax. Missing param `func`.'],
    ['at(origin: 1, func: exp, scale: -10, decay: 0.4)', 'accepted'],
    ['at(missing_values: nowhere)', '400 Bad syntax for sorting field `at`'],
    ['at(nonsense: 1)', '400 Bad syntax for sorting field `at`'],
    ['_eval()', '400 The eval expression in sort_by is empty.'],
    ['_eval(nope:1)', '400 Error parsing eval expression in sort_by clause.'],
    [
      `_eval([${Array.from({ length: 17 }, (_, at) => `(at:${at}):${at}`)}])`,
      '400 `_eval` takes at most 16 different scores. Put expressions with the same score side by side.',
    ],
    [
      `_eval([${Array.from({ length: 101 }, (_, at) => `(at:${at}):5`)}])`,
      '400 `_eval` takes at most 100 expressions.',
    ],
    ['_eval(at:1):desc,_eval(at:2)', '422 Only one sorting eval expression is allowed.'],
    ['_text_match(bucket: 2)', '400 Invalid sorting parameter passed for _text_match.'],
    ['_text_match(buckets: x)', badBuckets('_text_match')],
    ['_vector_distance(2)', '400 Invalid sorting parameter passed for _vector_distance.'],
    ['_vector_distance(bucket_size: -1)', badBuckets('_vector_distance')],
    ['_vector_distance(buckets: 4294967296)', badBuckets('_vector_distance')],
    ['_rand(-1)', '400 Only positive integer seed value is allowed.'],
    ['_rand(x)', '400 Only positive integer seed value is allowed.'],
    ['_random()', '404 Could not find a field named `_random` in the schema for sorting.'],
    ['_nothing', '404 Could not find a field named `_nothing` in the schema for sorting.'],
  ])('%s: %s', async (sort, message) => {
    expect(await refusal(things, { q: '*', sort_by: `${sort}:asc` })).toBe(message)
  })
})

it('strings are missing when they are empty, and the largest unless told otherwise', async () => {
  const words = await makeCollection(
    [{ name: 'title', type: 'string', sort: true, optional: true }],
    [
      { id: 'a', title: 'alpha' },
      { id: 'b', title: 'Beta' },
      { id: 'empty', title: '' },
      { id: 'g', title: 'gamma' },
    ],
  )
  const ascending = ['a', 'b', 'g']
  const descending = ['g', 'b', 'a']
  for (const [sort, ids] of [
    ['title:asc', [...ascending, 'empty']],
    ['title:desc', ['empty', ...descending]],
    ['title(missing_values: normal):desc', ['empty', ...descending]],
    ['title(missing_values: first):asc', ['empty', ...ascending]],
    ['title(missing_values: first):desc', ['empty', ...descending]],
    ['title(missing_values: last):asc', [...ascending, 'empty']],
    ['title(missing_values: last):desc', [...descending, 'empty']],
  ] as const) {
    expect(await order(words, sort), sort).toEqual(ids)
  }
  expect(await refusal(words, { q: '*', sort_by: 'title(foo: bar):desc' })).toBe(
    '400 Bad syntax for sorting field `title`',
  )
})

describe('_rand', () => {
  let many: TestCollection
  beforeAll(async () => {
    const documents = Array.from({ length: 200 }, (_, n) => ({ id: String(n), name: 'x', rank: n % 2 }))
    many = await makeCollection(
      [
        { name: 'name', type: 'string' },
        { name: 'rank', type: 'int32' },
      ],
      documents,
    )
  })
  const all = (sort: string) => order(many, sort, { per_page: '250' })

  it('shuffles by its seed, the same on every page', async () => {
    const first = await all('_rand(5):asc')
    expect(first.toSorted()).toEqual((await all('_seq_id:asc')).toSorted())
    expect(await all('_rand(5):asc')).toEqual(first)
    expect(await all('_rand(6):asc')).not.toEqual(first)
    const pages = [
      ...(await order(many, '_rand(5):asc', { per_page: '100' })),
      ...(await order(many, '_rand(5):asc', { per_page: '100', page: '2' })),
    ]
    expect(pages).toEqual(first)
    // Neighbours are not neighbours any more.
    const steps = first.slice(1).map((id, index) => Math.abs(Number(id) - Number(first[index])))
    expect(steps.filter((step) => step === 1).length).toBeLessThan(20)
    expect(new Set(steps).size).toBeGreaterThan(50)
  })

  it('takes its seed from the clock, and breaks ties', async () => {
    expect(await all('_rand():asc')).toHaveLength(200)
    expect(await all('_rand:desc')).toHaveLength(200)
    const ranked = await all('rank:desc,_rand(3):asc')
    expect(ranked.slice(0, 100).every((id) => Number(id) % 2 === 1)).toBe(true)
    expect(ranked.slice(0, 100)).not.toEqual(ranked.slice(0, 100).toSorted((a, b) => Number(a) - Number(b)))
  })
})

describe('_vector_query', () => {
  let points: TestCollection
  beforeAll(async () => {
    points = await makeCollection(
      [
        { name: 'name', type: 'string' },
        { name: 'points', type: 'float[]', num_dim: 2, optional: true },
      ],
      [
        { id: '0', name: 'title a', points: [7, 8] },
        { id: '1', name: 'title b', points: [8, 15] },
        { id: '2', name: 'title c', points: [5, 12] },
        { id: 'none', name: 'title d' },
      ],
    )
  })

  it.each([
    ['_vector_query(points:([5.0, 5.0])):asc', ['0', '1', '2', 'none']],
    ['_vector_query(points:([5.0, 5.0])):desc', ['2', '1', '0', 'none']],
    ['_vector_query(points:([], id: 2)):asc', ['2', '1', '0', 'none']],
    ['_vector_query(points:([5, 5], distance_threshold: 0.01)):asc', ['0', 'none', '2', '1']],
  ])('%s', async (sort, ids) => {
    expect(await order(points, sort)).toEqual(ids)
    expect(await order(points, sort, { q: 'title', query_by: 'name' })).toEqual(ids)
  })

  it('tells the distance, and counts every match', async () => {
    const { hits, found } = await points.search({
      q: 'title',
      query_by: 'name',
      sort_by: '_text_match:desc,_vector_query(points:([5.0, 5.0])):asc',
      per_page: '2',
    })
    expect(found).toBe(4)
    expect(hits!.map(({ vector_distance }) => vector_distance)).toEqual([
      expect.closeTo(0.00222, 4),
      expect.closeTo(0.0433, 3),
    ])
  })

  it.each([
    ['_vector_query()', '400 The vector query in sort_by is empty.'],
    ['_vector_query(name:([1, 2]))', '400 Field `name` does not have a vector query index.'],
    ['_vector_query(points:([1]))', '400 Query field `points` must have 2 dimensions.'],
    ['_vector_query(points:([], queries: [a, b]))', '400 Vector query could not find any embedded fields.'],
    [
      '_vector_distance',
      '404 sort_by vector_distance is only supported for vector queries, semantic search and hybrid search.',
    ],
  ])('%s: %s', async (sort, message) => {
    expect(await refusal(points, { q: '*', sort_by: `${sort}:asc` })).toBe(message)
  })
})

describe('places', () => {
  let places: TestCollection
  beforeAll(async () => {
    const at = [
      [32.24678, 77.19239],
      [32.23959, 77.18763],
      [32.24751, 77.18814],
      [32.24493, 77.17038],
      [32.25749, 77.17583],
      [32.26059, 77.21798],
      [32.23743, 77.18639],
      [32.26263, 77.2196],
    ]
    places = await makeCollection(
      [
        { name: 'loc', type: 'geopoint' },
        { name: 'points', type: 'int32' },
      ],
      at.map((loc, index) => ({ id: String(index), loc, points: index })),
    )
  })

  it.each([
    ['loc(32.24348, 77.1893, precision: 0.9 km):asc,points:desc', ['6', '2', '1', '0', '3', '4', '7', '5']],
    ['loc(32.24348, 77.1893, exclude_radius: 1 km):asc,points:asc', ['0', '1', '2', '6', '3', '4', '5', '7']],
    ['loc(32.24348, 77.1893):desc', ['7', '5', '4', '3', '6', '0', '2', '1']],
  ])('%s', async (sort, ids) => {
    expect(await order(places, sort)).toEqual(ids)
  })

  it.each([
    ['loc(32.24348, 77.1893, precision 1 km)', '400 Bad syntax for sorting field `loc`'],
    [
      'loc(32.24348, 77.1893, precision: 1 meter)',
      "400 Sort field's parameter unit must be either `km` or `mi`.",
    ],
    [`loc(32.24348, 77.1893, precision: ${'9'.repeat(400)} km)`, '400 Bad syntax for sorting field `loc`'],
    [
      `loc(32.24348, 77.1893, exclude_radius: ${'9'.repeat(306)} km)`,
      '400 Bad syntax for sorting field `loc`',
    ],
    ['loc(32.24348, 77.1893, precision: -10 km)', "400 Sort field's parameter must be a positive number."],
    ['loc(x, 77.1893)', '400 Bad syntax for sorting field `loc`'],
  ])('%s: %s', async (sort, message) => {
    expect(await refusal(places, { q: '*', sort_by: `${sort}:asc` })).toBe(message)
  })
})
