/** Searches in plain language through the official client, with a model that answers over HTTP. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { client, KEY, request, unique } from './harness'
import { type Llm, startLlm } from './llm'

const SHIRTS = [
  { id: '1', name: 'Red cotton shirt', color: 'Red', price: 25, owner: 'ann', cost: 3 },
  { id: '2', name: 'Red silk shirt', color: 'Red', price: 80, owner: 'bob', cost: 30 },
  { id: '3', name: 'Blue jeans', color: 'Blue', price: 50, owner: 'ann', cost: 20 },
]

let llm: Llm
/** what the model answers */
let answer = ''
/** what it was told: the last system prompt */
let told = ''
let shirts: string
let model: string

beforeAll(async () => {
  llm = await startLlm({
    answer: (_question, system) => {
      told = system
      return answer
    },
  })
  shirts = unique('shirts')
  await client()
    .collections()
    .create({
      name: shirts,
      fields: [
        { name: 'name', type: 'string' },
        { name: 'color', type: 'string', facet: true },
        { name: 'price', type: 'float' },
        { name: 'owner', type: 'string', facet: true },
        { name: 'cost', type: 'float' },
      ],
    })
  await client().collections(shirts).documents().import(SHIRTS)
  model = await nlModel()
})
afterAll(() => llm.stop())

async function nlModel(more: object = {}): Promise<string> {
  const id = unique('interpreter')
  const made = await client()
    .nlSearchModels()
    .create({
      id,
      model_name: 'openai/gpt-4o-mini',
      api_key: 'sk-1234567890',
      max_bytes: 16_384,
      openai_url: llm.url,
      ...more,
    } as never)
  return made.id
}

// biome-ignore lint/suspicious/noExplicitAny: replies are checked field by field
const search = async (q: string, parameters: object = {}, key = KEY): Promise<any> =>
  client(key)
    .collections(shirts)
    .documents()
    .search({ q, query_by: 'name', nl_query: true, nl_model_id: model, ...parameters } as never)

const ids = (result: { hits: { document: { id: string } }[] }): string[] =>
  result.hits.map(({ document }) => document.id)

const scoped = async (embedded: object): Promise<string> => {
  const { value } = await client()
    .keys()
    .create({ description: 'search', actions: ['documents:search'], collections: [shirts] })
  return client()
    .keys()
    .generateScopedSearchKey(value!, embedded as never)
}

describe('models', () => {
  test('are made, listed, changed, renamed and deleted, their secrets masked', async () => {
    const id = await nlModel({ system_prompt: 'Prices are in euros.' })
    const shown = { id, model_name: 'openai/gpt-4o-mini', api_key: 'sk-12********', max_bytes: 16_384 }
    expect(await client().nlSearchModels(id).retrieve()).toMatchObject(shown)
    expect(await client().nlSearchModels().retrieve()).toContainEqual(expect.objectContaining(shown))
    const changed = await client()
      .nlSearchModels(id)
      .update({ ...shown, temperature: 0.2 })
    expect(changed).toMatchObject({ ...shown, temperature: 0.2, system_prompt: 'Prices are in euros.' })
    const taken = await request('PUT', `/nl_search_models/${id}`, { id: model })
    expect([taken.status, taken.body.message]).toEqual([409, 'Model already exists'])
    const renamed = await request('PUT', `/nl_search_models/${id}`, { id: `${id}-new` })
    expect(renamed.body.id).toBe(`${id}-new`)
    await expect(client().nlSearchModels(id).retrieve()).rejects.toMatchObject({ httpStatus: 404 })
    // The stored key still works under the new name.
    answer = '{"filter_by":"color:=Blue"}'
    expect(ids(await search('something blue', { nl_model_id: `${id}-new` }))).toEqual(['3'])
    expect(await client().nlSearchModels(`${id}-new`).delete()).toMatchObject({ id: `${id}-new` })
    await expect(client().nlSearchModels(`${id}-new`).retrieve()).rejects.toMatchObject({ httpStatus: 404 })
  })

  test('keep their secrets for their host', async () => {
    const other = await startLlm()
    const { status, body } = await request('PUT', `/nl_search_models/${model}`, { openai_url: other.url })
    expect([status, body.message]).toEqual([
      400,
      expect.stringContaining('where its stored secrets do not go'),
    ])
    expect(other.calls()).toEqual([])
    await other.stop()
  })

  test('lose none of the changes that come at the same time', async () => {
    const id = await nlModel()
    const changes = [{ temperature: 0.3 }, { system_prompt: 'Prices are in euros.' }, { tokens_per_day: 500 }]
    const replies = await Promise.all(
      changes.map((change) => request('PUT', `/nl_search_models/${id}`, change)),
    )
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(await client().nlSearchModels(id).retrieve()).toMatchObject(Object.assign({}, ...changes))
    // Of two that rename it, one finds it gone.
    const renamed = await Promise.all(
      ['a', 'b'].map((name) => request('PUT', `/nl_search_models/${id}`, { id: `${id}-${name}` })),
    )
    expect(renamed.map(({ status }) => status).sort()).toEqual([200, 404])
    const models = await client().nlSearchModels().retrieve()
    expect(models.filter((each) => each.id.startsWith(id))).toHaveLength(1)
  })

  test('take the address that Typesense has for vLLM and others', async () => {
    const id = await nlModel({ openai_url: undefined, api_url: `${llm.url}/v1/chat/completions` })
    answer = '{"filter_by":"color:=Blue"}'
    expect(ids(await search('something blue', { nl_model_id: id }))).toEqual(['3'])
  })

  test.each<[object, string]>([
    [{ model_name: 5 }, 'Property `model_name` is not provided or not a string.'],
    [{ system_prompt: 5 }, 'Property `system_prompt` is not a string.'],
    [{ max_bytes: 0 }, 'Property `max_bytes` is not provided or not a positive integer.'],
    [{ model_name: 'gcp/gemini' }, 'Model namespace `gcp` is not supported.'],
    [{ model_name: 'local/extractive' }, 'Model namespace `local` is not supported.'],
    [{ api_key: '' }, 'Property `api_key` is missing or is not a non-empty string.'],
    [{ model_name: 'vllm/m' }, 'Property `api_url` is missing or is not a non-empty string.'],
    [
      { model_name: 'cloudflare/@cf/m', account_id: undefined },
      'Property `account_id` is missing or is not a non-empty string.',
    ],
    [{ temperature: 3 }, 'Property `temperature` is not a number from 0 to 2.'],
  ])('%j is refused', async (wrong, message) => {
    const body = { model_name: 'openai/m', api_key: 'k', max_bytes: 5, openai_url: llm.url, ...wrong }
    const reply = await request('POST', '/nl_search_models', body)
    expect([reply.status, reply.body.message]).toEqual([400, message])
  })
})

describe('searches', () => {
  test('are run with what the model wrote, and say so', async () => {
    answer = '{"q":"shirt","filter_by":"color:=Red && price:<100","sort_by":"price:desc"}'
    const result = await search('show me the dearest red shirts under 100', { filter_by: 'price:>1' })
    expect(ids(result)).toEqual(['2', '1'])
    expect(result.request_params).toMatchObject({ q: 'show me the dearest red shirts under 100' })
    expect(result.parsed_nl_query).toEqual({
      parse_time_ms: expect.any(Number),
      generated_params: { q: 'shirt', filter_by: 'color:=Red && price:<100', sort_by: 'price:desc' },
      augmented_params: {
        q: 'shirt',
        filter_by: '(price:>1) && (color:=Red && price:<100)',
        sort_by: 'price:desc',
        query_by: 'name',
      },
    })
    expect(told).toContain('- color (string), with values such as "Red", "Blue"')
    expect(told).toContain('- price (float, sortable)')
  })

  test('of conditions alone find everything that meets them', async () => {
    answer = 'Here it is:\n```json\n{"filter_by":"color:Blue"}\n```'
    const result = await search('anything blue', { nl_query_debug: true })
    expect(ids(result)).toEqual(['3'])
    expect(result.parsed_nl_query.augmented_params.q).toBe('*')
    expect(result.parsed_nl_query.llm_response).toEqual({
      content: answer,
      model: 'gpt-4o-mini',
      extraction_method: 'regex',
    })
    const hidden = await search('anything blue', { exclude_fields: 'parsed_nl_query' })
    expect([ids(hidden), hidden.parsed_nl_query]).toEqual([['3'], undefined])
  })

  test('of a multi_search each have their own', async () => {
    answer = '{"filter_by":"color:=Blue"}'
    const one = { collection: shirts, query_by: 'name', nl_query: true, nl_model_id: model }
    const { results } = (await client().multiSearch.perform({
      searches: [
        { ...one, q: 'something blue' } as never,
        { collection: shirts, q: 'silk', query_by: 'name' },
      ],
    })) as { results: never[] }
    expect(results.map(ids)).toEqual([['3'], ['2']])
    const union = await request('POST', '/multi_search', {
      union: true,
      searches: [{ ...one, q: 'something blue' }],
    })
    expect(union.body).toMatchObject({
      code: 400,
      error: expect.stringContaining('`nl_query` is not supported'),
    })
  })

  test.each([
    ['no JSON', 'Could not extract search parameters'],
    ['{"filter_by":5}', 'Could not extract search parameters'],
    ['{"filter_by":"size:=XL"}', 'Could not find a filter field named `size` in the schema.'],
    ['{"filter_by":"color:=Red) || (id:*"}', 'Could not parse the filter query: unbalanced parentheses.'],
    [
      '{"filter_by":"price:cheap"}',
      'Error with filter field `price`: Numerical field has an invalid comparator.',
    ],
    ['{"filter_by":"$other(a:=1)"}', 'The filter is not usable.'],
    ['{"sort_by":"name:asc"}', 'Could not find a field named `name` in the schema for sorting.'],
    [
      '{"sort_by":"_eval(color:Red):desc"}',
      'Could not find a field named `_eval(color:Red)` in the schema for sorting.',
    ],
  ])('fall back to the plain search when the model writes %s', async (written, error) => {
    answer = written
    const result = await search('silk')
    expect(ids(result)).toEqual(['2'])
    expect(result.parsed_nl_query).toEqual({
      parse_time_ms: expect.any(Number),
      error: `Error generating search parameters: ${error}`,
      generated_params: {},
      augmented_params: { q: 'silk', query_by: 'name' },
    })
  })

  test('fall back when the model is unknown or dead', async () => {
    const unknown = await search('silk', { nl_model_id: 'nobody' })
    expect([ids(unknown), unknown.parsed_nl_query.error]).toEqual([
      ['2'],
      'Error generating search parameters: Model not found',
    ])
    const dying = await startLlm()
    const dead = await nlModel({ openai_url: dying.url })
    await dying.stop()
    const result = await search('silk', { nl_model_id: dead })
    expect(ids(result)).toEqual(['2'])
    expect(result.parsed_nl_query.error).toContain('Error generating search parameters: ')
  })

  test('cost what they cost: a budget that is spent ends them, and the search goes on', async () => {
    answer = '{"filter_by":"color:=Blue"}'
    const poor = await nlModel({ turns_per_day: 1 })
    expect(ids(await search('something blue', { nl_model_id: poor }))).toEqual(['3'])
    const usage = () => request('GET', `/usage?model=nl_search_models/${poor}`)
    await expect
      .poll(async () => JSON.stringify((await usage()).body), { timeout: 20_000 })
      .toContain('"turns":1')
    await expect
      .poll(async () => (await search('silk', { nl_model_id: poor })).parsed_nl_query.error, {
        timeout: 20_000,
      })
      .toContain('The budget of 1 turns a day')
  })
})

describe("a key's holder", () => {
  test('reaches no more through a model than without one', async () => {
    const key = await scoped({ filter_by: 'owner:=ann', exclude_fields: 'cost', nl_model_id: model })
    answer = '{"q":"*","filter_by":"owner:=bob || price:>0"}'
    const result = await search('all of bob', {}, key)
    expect(ids(result).sort()).toEqual(['1', '3'])
    // Neither the key's filter nor what it hides is told, to the caller or to the model.
    expect(result.parsed_nl_query.augmented_params.filter_by).toBe('owner:=bob || price:>0')
    expect(told).not.toContain('bob')
    expect(told).not.toContain('cost')
    answer = '{"filter_by":"cost:>0"}'
    expect((await search('silk', {}, key)).parsed_nl_query.error).toContain('named `cost`')
    const debug = await search('all', { nl_query_debug: true }, key)
    expect(debug.parsed_nl_query.llm_response).toBeUndefined()
  })

  test('is held by the filter of a preset that the key fixes', async () => {
    const preset = unique('preset')
    await client()
      .presets()
      .upsert(preset, { value: { filter_by: 'owner:=ann' } } as never)
    const key = await scoped({ preset, nl_model_id: model })
    answer = '{"q":"*","filter_by":"owner:=bob || price:>0"}'
    const result = await search('whatever there is', {}, key)
    expect(ids(result).sort()).toEqual(['1', '3'])
    expect(result.parsed_nl_query.augmented_params.filter_by).toBe('owner:=bob || price:>0')
    expect(told).toContain('ann')
    expect(told).not.toContain('bob')
    // Whoever pins a document has not lifted the filter.
    const pinned = { nl_query: false, pinned_hits: '2:1', filter_curated_hits: false }
    expect(ids(await search('jeans', pinned, key))).toEqual(['3'])
    const both = await scoped({ preset, filter_by: 'price:<30' })
    expect(ids(await search('*', pinned, both))).toEqual(['1'])
  })

  test('of a page spends on no model that the key does not name', async () => {
    llm.forget()
    const key = await scoped({ filter_by: 'owner:=ann' })
    await expect(search('something blue', {}, key)).rejects.toMatchObject({ httpStatus: 401 })
    const { body } = await request('POST', '/keys', {
      description: 'page',
      actions: ['documents:search'],
      collections: [shirts],
      limits: { allowed_origins: ['https://shop.example'] },
    })
    const paged = await request(
      'GET',
      `/collections/${shirts}/documents/search?q=something+blue&query_by=name&nl_query=true&nl_model_id=${model}`,
      undefined,
      body.value,
    )
    expect([paged.status, llm.calls()]).toEqual([401, []])
  })

  test('of a page is told nothing of a provider', async () => {
    const dying = await startLlm()
    const dead = await nlModel({ openai_url: dying.url })
    await dying.stop()
    const result = await search('jeans', {}, await scoped({ nl_model_id: dead }))
    expect(ids(result)).toEqual(['3'])
    expect(result.parsed_nl_query.error).toMatch(/This did not work through no fault of yours/)
  })
})
