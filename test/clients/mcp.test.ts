/** The Model Context Protocol, by the official SDK's client over real sockets; inspector.full.test.ts has the Inspector's command line. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAssistant, createModel, createShows, KEY, request, unique, url } from './harness'
import { type Llm, startLlm } from './llm'
import { ask, connect as connectTo, post as postTo, rpc, textIn } from './mcp-client'
import { type Paced, startPaced, words } from './paced'

let llm: Llm
let paced: Paced
let shows: string
let assistant: string
let slow: string

beforeAll(async () => {
  llm = await startLlm()
  paced = await startPaced()
  shows = await createShows()
  const model = await createModel({ model_name: 'openai/gpt-4o-mini', openai_url: llm.url })
  assistant = await createAssistant({ model, collections: [shows] })
  const writing = await createModel({ model_name: 'openai/paced-40-5', openai_url: paced.url })
  slow = await createAssistant({ model: writing, collections: [shows] })
})
afterAll(() => Promise.all([llm.stop(), paced.stop()]))

const connect = (path = `/mcp/${assistant}`, key = KEY, headers: Record<string, string> = {}) =>
  connectTo(path, key, headers)
const post = (body: unknown, headers: Record<string, string> = {}, path = `/mcp/${assistant}`) =>
  postTo(body, headers, path)
const notification = (method: string) => ({ jsonrpc: '2.0', method })

describe("the SDK's client", () => {
  test('learns what the server is and which tools it has', async () => {
    const client = await connect()
    expect(client.getServerVersion()).toMatchObject({ name: 'parley' })
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(['search', 'fetch', 'ask', 'list_conversations', 'gaps'])
    await client.ping()
    await client.close()
  })

  test('searches, and reads a document that was found', async () => {
    const client = await connect()
    const { structuredContent, ...found } = await client.callTool({
      name: 'search',
      arguments: { query: 'a crew that salvages warships', limit: 2 },
    })
    const { results } = structuredContent as { results: { id: string; title: string; text: string }[] }
    expect(results).toHaveLength(2)
    expect(results[0]).toMatchObject({ id: `${shows}/salvage`, title: 'Starship Salvage' })
    expect(JSON.parse(textIn(found))).toEqual({ results })
    const read = await client.callTool({ name: 'fetch', arguments: { id: results[0]!.id } })
    expect(read.structuredContent).toMatchObject({
      id: `${shows}/salvage`,
      title: 'Starship Salvage',
      text: expect.stringContaining('An action series about a crew that salvages warships.'),
      metadata: { collection: shows },
    })
    await client.close()
  })

  test('asks, and goes on from the answer', async () => {
    const client = await connect()
    const first = await ask(client, { question: 'an action series' })
    expect(first.answer).toBe('You asked: an action series')
    expect(first.sources.map(({ id }) => id)).toContain(`${shows}/quest`)
    const second = await ask(client, { question: 'and another?', conversation_id: first.conversation_id })
    expect(second).toMatchObject({ conversation_id: first.conversation_id, turn: 2 })
    expect(second.answer).toBe('You asked: standalone: and another?')
    const { body } = await request('GET', `/conversations/${first.conversation_id}`)
    expect(body).toMatchObject({ protocol: 'mcp', turn_count: 2 })
    await client.close()
  })

  test('is told how far an answer is while it is written', async () => {
    const client = await connect(`/mcp/${slow}`)
    const seen: { progress: number; message?: string | undefined }[] = []
    const { structuredContent } = await client.callTool(
      { name: 'ask', arguments: { question: unique('an action series') } },
      undefined,
      { onprogress: (progress) => seen.push(progress) },
    )
    expect(seen[0]).toMatchObject({ message: expect.stringMatching(/^\d+ documents found\.$/) })
    expect(seen.length).toBeGreaterThan(3)
    expect(seen.every(({ progress }, index) => index === 0 || progress > seen[index - 1]!.progress)).toBe(
      true,
    )
    const written = seen
      .slice(1)
      .map(({ message }) => message)
      .join('')
    expect(written).toBe(words(40).join(''))
    expect(structuredContent).toMatchObject({ answer: written })
    await client.close()
  })

  test('lists documents as resources, page by page, and reads them', async () => {
    const client = await connect()
    const { resources, nextCursor } = await client.listResources()
    expect(nextCursor).toBeUndefined()
    expect(resources.map(({ title }) => title).sort()).toEqual([
      'Galactic Quest',
      'Night Court',
      'Quiet Kitchen',
      'Reef',
      'Starship Salvage',
    ])
    const reef = resources.find(({ title }) => title === 'Reef')!
    const { contents } = await client.readResource({ uri: reef.uri })
    expect(contents).toEqual([
      { uri: reef.uri, mimeType: 'text/plain', text: expect.stringContaining('coral') },
    ])
    const { resourceTemplates } = await client.listResourceTemplates()
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toEqual([
      'parley://documents/{collection}/{id}',
    ])
    const gone = client.readResource({ uri: `parley://documents/${shows}/nothing` })
    await expect(gone).rejects.toMatchObject({ code: -32002 })
    await client.close()
  })

  test('pages through more documents than one page holds', async () => {
    const name = unique('many')
    await request('POST', '/collections', { name, fields: [{ name: 'title', type: 'string' }] })
    const lines = Array.from({ length: 120 }, (_, n) => JSON.stringify({ id: `d ${n}`, title: `Title ${n}` }))
    await request('POST', `/collections/${name}/documents/import`, lines.join('\n'))
    const model = await createModel({ model_name: 'openai/gpt-4o-mini', openai_url: llm.url })
    const client = await connect(`/mcp/${await createAssistant({ model, collections: [name] })}`)
    const uris: string[] = []
    let cursor: string | undefined
    do {
      const page = await client.listResources(cursor === undefined ? {} : { cursor })
      uris.push(...page.resources.map(({ uri }) => uri))
      cursor = page.nextCursor
    } while (cursor !== undefined)
    expect(new Set(uris).size).toBe(120)
    const { contents } = await client.readResource({ uri: uris[60]! })
    expect(contents[0]).toMatchObject({ text: expect.stringMatching(/^Title \d+$/) })
    await client.close()
  })

  test('may leave arguments empty, and write a number as text', async () => {
    const client = await connect()
    const call = (name: string, given: Record<string, unknown>) =>
      client.callTool({ name, arguments: given }).then(({ isError, content }) => isError && content)
    expect(await call('search', { query: 'crew', limit: '3' })).toBeFalsy()
    expect(await call('search', { query: 'crew', limit: null })).toBeFalsy()
    for (const limit of [' 3 ', '3.0', 3.0]) expect(await call('search', { query: 42, limit })).toBeFalsy()
    expect(await call('ask', { question: unique('who'), conversation_id: '' })).toBeFalsy()
    expect(await call('list_conversations', { q: '', limit: '', cursor: null })).toBeFalsy()
    for (const limit of ['three', '0', '3.5', '51', [3]]) {
      const refused = await client.callTool({ name: 'search', arguments: { query: 'crew', limit } })
      expect(textIn(refused)).toContain('`limit`')
    }
    expect(textIn(await client.callTool({ name: 'search', arguments: { query: null } }))).toContain('`query`')
    await client.close()
  })

  test('reads in a result what went wrong', async () => {
    const client = await connect()
    const bad = await client.callTool({ name: 'search', arguments: { query: 'x', limit: 1000 } })
    expect(bad).toMatchObject({ isError: true })
    expect(textIn(bad)).toContain('`limit`')
    const unknown = await client.callTool({
      name: 'ask',
      arguments: { question: 'And?', conversation_id: crypto.randomUUID() },
    })
    expect(unknown).toMatchObject({ isError: true })
    expect(textIn(unknown)).toMatch(/conversation/i)
    const nothing = await client.callTool({ name: 'fetch', arguments: { id: `${shows}/nothing` } })
    expect(textIn(nothing)).toContain('There is no document')
    await expect(client.callTool({ name: 'delete', arguments: {} })).rejects.toMatchObject({ code: -32602 })
    await client.close()
  })

  test('is refused without a key, and told where to read about it', async () => {
    await expect(connect(`/mcp/${assistant}`, 'wrong')).rejects.toThrow(/401|a valid/)
    const refused = await post(rpc('ping'), { authorization: '' })
    expect(refused.status).toBe(401)
    expect(refused.json).toMatchObject({
      jsonrpc: '2.0',
      id: null,
      error: { data: { code: 'unauthorized' } },
    })
    const [, metadata] = /resource_metadata="([^"]+)"/.exec(refused.headers.get('www-authenticate')!)!
    const described = await (await fetch(metadata!)).json()
    expect(described).toMatchObject({
      resource: `${url}/mcp/${assistant}`,
      bearer_methods_supported: ['header'],
    })
  })
})

describe('the wire', () => {
  const hello = (protocolVersion: string) =>
    rpc('initialize', { protocolVersion, capabilities: {}, clientInfo: { name: 'a test', version: '1' } })

  test.each([
    ['2025-11-25', '2025-11-25'],
    ['2025-06-18', '2025-06-18'],
    ['2025-03-26', '2025-03-26'],
    ['2024-11-05', '2025-11-25'],
    ['9999-01-01', '2025-11-25'],
  ])('agrees on a revision: asked for %s it offers %s', async (asked, offered) => {
    const { json, headers } = await post(hello(asked))
    expect(json.result.protocolVersion).toBe(offered)
    // There is no session: each request stands alone.
    expect(headers.get('mcp-session-id')).toBeNull()
  })

  test('says in JSON-RPC what is wrong with a message', async () => {
    const codes = async (body: unknown, headers = {}) => {
      const { status, json } = await post(body, headers)
      return [status, json.error.code]
    }
    expect(await codes('{')).toEqual([400, -32700])
    expect(await codes({ method: 'ping', id: 1 })).toEqual([400, -32600])
    expect(await codes({ jsonrpc: '2.0', id: 1 })).toEqual([400, -32600])
    expect(await codes([])).toEqual([400, -32600])
    expect(await codes(rpc('prompts/list'))).toEqual([200, -32601])
    expect(await codes(rpc('tools/call', { name: 'nothing' }))).toEqual([200, -32602])
    expect(await codes(rpc('resources/list', { cursor: 'x' }))).toEqual([200, -32602])
    expect(await codes(rpc('ping'), { 'mcp-protocol-version': '1999-01-01' })).toEqual([400, -32600])
  })

  test('takes notifications, replies and batches', async () => {
    expect((await post(notification('notifications/initialized'))).status).toBe(202)
    expect((await post({ jsonrpc: '2.0', id: 7, result: {} })).status).toBe(202)
    for (const [method, params] of [
      ['tools/list', null],
      ['tools/list', { cursor: null, _meta: null }],
      ['resources/list', { cursor: null }],
      ['resources/list', { cursor: '' }],
      ['tools/call', { name: 'list_conversations', arguments: null }],
      ['tools/call', { name: 'search', arguments: '{"query":"crew"}', _meta: null }],
    ]) {
      const { status, json } = await post({ jsonrpc: '2.0', id: 8, method, params })
      expect([method, params, status, json.error, json.result?.isError]).toEqual([
        method,
        params,
        200,
        undefined,
        undefined,
      ])
    }
    const { json } = await post([rpc('ping'), notification('notifications/cancelled'), rpc('x', {}, 2)])
    expect(json).toEqual([
      { jsonrpc: '2.0', id: 1, result: {} },
      { jsonrpc: '2.0', id: 2, error: { code: -32601, message: expect.any(String) } },
    ])
    const question = rpc('tools/call', { name: 'ask', arguments: { question: 'x' } })
    expect((await post([question, question])).json.error.code).toBe(-32600)
  })

  test('answers a question whole for a client that reads no streams', async () => {
    const question = rpc('tools/call', { name: 'ask', arguments: { question: 'a whole answer' } })
    const { json } = await post(question, { accept: 'application/json' })
    expect(json.result.structuredContent.answer).toBe('You asked: a whole answer')
  })
})
