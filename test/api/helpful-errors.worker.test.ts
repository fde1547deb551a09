/** Errors tell a person what to do. Where a wire fixes the message, `detail` beside it does. */
import { beforeAll, describe, expect, it } from 'vitest'
import { makeKey, setStage } from './parley/stage'
import { call, FORBIDDEN } from './typesense/api'
import { scopedKey } from './typesense/conversing'

const json = { headers: { 'content-type': 'application/json' } }
const BROKEN = '{\n  "name": "x",\n  "fields": [],\n}'
const PLACE = 'Line 4, column 1: unexpected "}".'

beforeAll(setStage)

describe('bad JSON', () => {
  it.each([
    ['POST', '/collections'],
    ['POST', '/keys'],
    ['POST', '/conversations/models'],
    ['PUT', '/aliases/a'],
    ['POST', '/multi_search'],
    ['POST', '/conversations', 'bad_request'],
    ['PUT', '/assistants/guide', 'bad_request'],
  ])('has its place beside the message: %s %s', async (method, path, code?: string) => {
    const told = { message: 'Bad JSON.', detail: PLACE, ...(code !== undefined && { code }) }
    expect(await call(method, path, { body: BROKEN })).toEqual([400, told])
  })

  it('of nothing says so', async () => {
    const [, body] = await call('POST', '/collections', { body: '' })
    expect(body).toEqual({ message: 'Bad JSON.', detail: 'The body is empty.' })
  })

  it('has its place in the message of wires that fix none', async () => {
    const [, openai] = await call('POST', '/v1/chat/completions', { ...json, body: BROKEN })
    expect(openai.error.message).toBe(`Bad JSON. ${PLACE}`)
    const [, search] = await call('POST', '/facts/_search', { ...json, body: BROKEN })
    expect(search.error).toMatchObject({ type: 'json_parse_exception', reason: `Bad JSON. ${PLACE}` })
  })

  it('of a document has its place behind the prefix', async () => {
    const [, one] = await call('POST', '/collections/facts/documents', { body: '{"text": "a",\n "b" 1}' })
    expect(one.message).toBe('Bad JSON: line 2, column 6: unexpected "1"')
  })
})

describe('an unknown collection', () => {
  const detail = 'There is no collection or alias `nobody`.'

  it.each([
    ['GET', '/collections/nobody', 404],
    ['GET', '/collections/nobody/documents/search?q=x&query_by=text', 404],
    ['GET', '/aliases/nobody', 404],
  ])('is named: %s %s', async (method, path, status) => {
    expect(await call(method, path)).toEqual([status, { message: 'Collection not found', detail }])
  })

  it('is named for each search of several', async () => {
    const searches = [
      { collection: 'facts', q: 'x', query_by: 'text' },
      { collection: 'nobody', q: 'x', query_by: 'text' },
    ]
    const [, { results }] = await call('POST', '/multi_search', { body: { searches } })
    expect(results[1]).toEqual({ code: 404, error: 'Collection not found', detail })
  })

  it('is named where a model has its history there', async () => {
    const body = { id: 'h', model_name: 'local/extractive', history_collection: 'nobody', max_bytes: 1_000 }
    expect(await call('POST', '/conversations/models', { body })).toEqual([
      400,
      { message: 'Collection not found', detail },
    ])
  })
})

describe('a key that may not', () => {
  it('is told what it may', async () => {
    const key = await makeKey({ actions: ['documents:search', 'documents:get'] })
    const path = '/collections/facts/documents/import'
    expect(await call('POST', path, { key, body: '{}' })).toEqual([
      401,
      {
        ...FORBIDDEN,
        detail: 'This key may not `documents:import`. It may `documents:search`, `documents:get`.',
      },
    ])
    const [, openai] = await call('POST', '/v1/chat/completions', {
      headers: { ...json.headers, authorization: `Bearer ${await makeKey({ actions: ['documents:get'] })}` },
      key: null,
      body: { model: 'guide', messages: [{ role: 'user', content: 'x' }] },
    })
    expect(openai.error.message).toMatch(
      /This key may not `assistants:ask` or `documents:search` or `conversations:create`\. It may `documents:get`\.$/,
    )
  })

  it('is told its collections', async () => {
    const key = await makeKey({ actions: ['documents:*'], collections: ['films', 'book.*'] })
    expect(await call('GET', '/collections/facts/documents/1', { key })).toEqual([
      401,
      {
        ...FORBIDDEN,
        detail: 'This key may not `documents:get` in `facts`. Its collections are `films`, `book.*`.',
      },
    ])
  })

  it('is told nothing if a page holds it, or if it is unknown', async () => {
    const search = await makeKey({ actions: ['documents:search'] })
    const page = await makeKey({ actions: ['documents:search'], limits: { turns_per_day: 10 } })
    for (const key of [page, await scopedKey(search, {}), 'nobody', null]) {
      expect(await call('DELETE', '/collections/facts', { key })).toEqual([401, FORBIDDEN])
    }
  })
})

describe('an unknown name', () => {
  it('of a property is corrected', async () => {
    const assistant = { model: 'm', collection: ['facts'] }
    expect(await call('PUT', '/assistants/guide', { body: assistant })).toEqual([
      400,
      { message: 'Unknown property `collection`; did you mean `collections`?', code: 'bad_request' },
    ])
    const [, asked] = await call('POST', '/a/guide/conversations', { body: { question: 'x', streams: true } })
    expect(asked.message).toBe('Unknown property `streams`; did you mean `stream`?')
    const [, other] = await call('PUT', '/assistants/guide', { body: { model: 'm', temperature: 1 } })
    expect(other.message).toMatch(/^Unknown property `temperature`; the known ones are `model`, /)
  })

  it('of a property of a question is corrected, and never searched with', async () => {
    const asked = { question: 'x', model: 'm', collections: ['facts'] }
    const told = async (body: object) => (await call('POST', '/conversations', { body }))[1].message
    expect(await told({ ...asked, question: undefined, questoin: 'x' })).toBe(
      'Unknown property `questoin`; did you mean `question`?',
    )
    expect(await told({ ...asked, collections: undefined, colections: ['facts'] })).toBe(
      'Unknown property `colections`; did you mean `collections`?',
    )
    expect(await told({ ...asked, fliter_by: 'a:1' })).toBe(
      'Unknown property `fliter_by`; did you mean `filter_by`?',
    )
    const searches = [{ collection: 'facts' }, { collection: 'facts', per_pgae: 3 }]
    expect(await told({ question: 'x', model: 'm', searches })).toBe(
      'Unknown property `searches.1.per_pgae`; did you mean `per_page`?',
    )
    expect(await told({ ...asked, files: [{ name: 'a', texts: 'b' }] })).toBe(
      'Unknown property `files.0.texts`; did you mean `text`?',
    )
    expect(await told({ model: 'm', collections: ['facts'] })).toBe('`question`: It is missing.')
  })

  it("of a parameter of Parley's own routes is corrected", async () => {
    const told = async (path: string) => (await call('GET', path))[1].message
    expect(await told('/conversations?lmit=3')).toBe('Unknown parameter `lmit`; did you mean `limit`?')
    expect(await told('/usage?form=2026-01-01')).toBe('Unknown parameter `form`; did you mean `from`?')
    expect(await told('/assistants?page=1')).toMatch(/^Unknown parameter `page`; the known ones are /)
  })

  it("of what Typesense's routes need is named beside its message", async () => {
    const detailOf = async (method: string, path: string, body?: object) =>
      (await call(method, path, body && { body }))[1].detail
    expect(await detailOf('POST', '/collections', { name: 'x', feilds: [] })).toBe(
      'Unknown property `feilds`; did you mean `fields`?',
    )
    expect(
      await detailOf('POST', '/collections', { name: 'x', fields: [{ name: 'a', tpye: 'string' }] }),
    ).toBe('Unknown property `tpye`; did you mean `type`?')
    expect(await detailOf('POST', '/keys', { description: 'd', actoins: ['*'], collections: ['*'] })).toBe(
      'Unknown property `actoins`; did you mean `actions`?',
    )
    expect(await detailOf('PUT', '/aliases/a', { colection_name: 'facts' })).toBe(
      'Unknown property `colection_name`; did you mean `collection_name`?',
    )
    expect(await detailOf('PUT', '/presets/a', { valeu: {} })).toBe(
      'Unknown property `valeu`; did you mean `value`?',
    )
    expect(await detailOf('PUT', '/stopwords/a', { stopword: ['b'] })).toBe(
      'Unknown property `stopword`; did you mean `stopwords`?',
    )
    expect(await detailOf('PUT', '/synonym_sets/a', { itmes: [] })).toBe(
      'Unknown property `itmes`; did you mean `items`?',
    )
    expect(await detailOf('POST', '/conversations/models', { model_nam: 'local/extractive' })).toBe(
      'Unknown property `model_nam`; did you mean `model_name`?',
    )
    expect(await detailOf('GET', '/collections/facts/documents/search?q=a&query_bi=text')).toBe(
      'Unknown property `query_bi`; did you mean `query_by`?',
    )
    // What is refused for another reason gets no hint.
    expect(await detailOf('POST', '/collections', { name: 'x', fields: 3, metadatas: {} })).toBeUndefined()
  })

  it('of a limit is corrected', async () => {
    const body = { description: 'd', actions: ['*'], collections: ['*'], limits: { turn_per_day: 5 } }
    const [, { message }] = await call('POST', '/keys', { body })
    expect(message).toBe('Unknown limit `turn_per_day`; did you mean `turns_per_day`?')
  })

  it.each(['assistant', 'turns_per_day', 'allowed_origins', 'limit'])('of a key is no %s', async (name) => {
    const body = { description: 'd', actions: ['*'], collections: ['*'], [name]: { turns_per_day: 5 } }
    expect(await call('POST', '/keys', { body })).toEqual([
      400,
      { message: `\`${name}\` does nothing here. Put limits of a key in \`limits\`.` },
    ])
  })

  it('of a parameter or a query is corrected in the words of OpenSearch', async () => {
    const [, parameter] = await call('POST', '/facts/_search?sizes=1', { ...json, body: {} })
    expect(parameter.error.reason).toBe(
      'request [/facts/_search] contains unrecognized parameter: [sizes] -> did you mean [size]?',
    )
    const [, query] = await call('POST', '/facts/_search', { ...json, body: { query: { macth: {} } } })
    expect(query.error.reason).toBe('unknown query [macth] did you mean [match]?')
  })
})
