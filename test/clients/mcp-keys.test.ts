/** What keys may do by the Model Context Protocol: bound ones, scoped ones, those for pages, and those of two visitors. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAssistant, createModel, createShows, KEY, request, client as typesense } from './harness'
import { type Llm, startLlm } from './llm'
import { ask, connect as connectTo, post as postTo, rpc, textIn } from './mcp-client'

let llm: Llm
let shows: string
let assistant: string
let other: string

beforeAll(async () => {
  llm = await startLlm()
  shows = await createShows()
  const model = await createModel({ model_name: 'openai/gpt-4o-mini', openai_url: llm.url })
  assistant = await createAssistant({ model, collections: [shows] })
  other = await createAssistant({ model, collections: [shows] })
})
afterAll(() => llm.stop())

const connect = (path = `/mcp/${assistant}`, key = KEY, headers: Record<string, string> = {}) =>
  connectTo(path, key, headers)
const post = (body: unknown, headers: Record<string, string> = {}, path = `/mcp/${assistant}`) =>
  postTo(body, headers, path)

describe('a key', () => {
  const makeKey = async (key: Record<string, unknown>): Promise<string> => {
    const { status, body } = await request('POST', '/keys', { description: 'a page', ...key })
    expect(status).toBe(201)
    return body.value
  }

  test('that is bound to an assistant reaches it alone, at the address without a name too', async () => {
    const key = await makeKey({ actions: ['assistants:ask'], collections: ['*'], limits: { assistant } })
    const client = await connect('/mcp', key)
    expect(client.getServerVersion()?.title).toBe(`Parley: ${assistant}`)
    expect((await ask(client, { question: 'an action series' })).answer).toContain('You asked')
    await client.close()
    await expect(connect(`/mcp/${other}`, key)).rejects.toThrow(/not found/i)
  })

  test('that is bound to an assistant asks and reads, but does not search or list', async () => {
    const key = await makeKey({ actions: ['*'], collections: ['*'], limits: { assistant } })
    const client = await connect(`/mcp/${assistant}`, key)
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(['fetch', 'ask', 'list_conversations'])
    const searched = await client.callTool({ name: 'search', arguments: { query: 'a crew' } })
    expect(searched).toMatchObject({ isError: true })
    expect(textIn(searched)).toContain('Forbidden')
    await expect(client.listResources()).rejects.toMatchObject({ code: -32000 })
    const read = await client.callTool({ name: 'fetch', arguments: { id: `${shows}/salvage` } })
    expect(read.structuredContent).toMatchObject({ title: 'Starship Salvage' })
    await client.close()
  })

  test('that can only converse does not search', async () => {
    const key = await makeKey({ actions: ['conversations:create'], collections: [shows] })
    const search = rpc('tools/call', { name: 'search', arguments: { query: 'a crew' } })
    const { json } = await post(search, { authorization: `Bearer ${key}` })
    expect(json.result).toMatchObject({ isError: true })
  })

  test('that hides documents, or fixes a page or a query, does so in lists too', async () => {
    const parent = await makeKey({ actions: ['documents:search'], collections: [shows] })
    const titles = async (parameters: Record<string, unknown>) => {
      const scoped = typesense().keys().generateScopedSearchKey(parent, parameters)
      const { json } = await post(rpc('resources/list'), { authorization: `Bearer ${scoped}` })
      expect(json.result.nextCursor).toBeUndefined()
      return json.result.resources.map(({ title }: { title: string }) => title).sort()
    }
    const others = ['Galactic Quest', 'Night Court', 'Quiet Kitchen', 'Starship Salvage']
    expect(await titles({ hidden_hits: 'reef' })).toEqual(others)
    expect(await titles({ page: 1, per_page: 2 })).toHaveLength(2)
    const scoped = typesense().keys().generateScopedSearchKey(parent, { hidden_hits: 'reef' })
    const fetched = rpc('tools/call', { name: 'fetch', arguments: { id: `${shows}/reef` } })
    const { json } = await post(fetched, { authorization: `Bearer ${scoped}` })
    expect(json.result).toMatchObject({ isError: true })
  })

  test('for pages gets as many searches a request as elsewhere', async () => {
    const key = await makeKey({
      actions: ['documents:search'],
      collections: [shows],
      limits: { turns_per_day: 5 },
    })
    const search = (id: number) => rpc('tools/call', { name: 'search', arguments: { query: 'a crew' } }, id)
    const batch = (count: number) =>
      post(
        Array.from({ length: count }, (_, id) => search(id)),
        { authorization: `Bearer ${key}` },
      )
    expect((await batch(10)).json).toHaveLength(10)
    const refused = await batch(11)
    expect([refused.status, refused.json.error.message]).toEqual([
      400,
      expect.stringContaining('at most 10 searches'),
    ])
  })

  test('that fixes a filter finds, reads and lists nothing else', async () => {
    const parent = await makeKey({ actions: ['documents:search'], collections: [shows] })
    const scoped = typesense().keys().generateScopedSearchKey(parent, { filter_by: 'points:>70' })
    const client = await connect(`/mcp/${assistant}`, scoped)
    const { resources } = await client.listResources()
    expect(resources.map(({ title }) => title).sort()).toEqual(['Galactic Quest', 'Starship Salvage'])
    const { structuredContent } = await client.callTool({
      name: 'search',
      arguments: { query: 'cooking with old recipes', limit: 50 },
    })
    expect(JSON.stringify(structuredContent)).not.toContain('Kitchen')
    const hidden = await client.callTool({ name: 'fetch', arguments: { id: `${shows}/kitchen` } })
    expect(hidden).toMatchObject({ isError: true })
    const uri = `parley://documents/${shows}/kitchen`
    await expect(client.readResource({ uri })).rejects.toMatchObject({ code: -32002 })
    await client.close()
  })

  test('of two visitors shows each their own conversations', async () => {
    const key = await makeKey({ actions: ['documents:search'], collections: [shows] })
    const visitor = () => ({
      'x-parley-visitor': `${crypto.randomUUID()}${crypto.randomUUID()}`.replaceAll('-', ''),
    })
    const [ann, bob] = [await connect(undefined, key, visitor()), await connect(undefined, key, visitor())]
    const first = await ask(ann, { question: 'My name is Ann.' })
    await ask(bob, { question: 'My name is Bob.' })
    const listed = await ann.callTool({ name: 'list_conversations', arguments: {} })
    const { conversations } = listed.structuredContent as { conversations: { id: string; title: string }[] }
    expect(conversations).toMatchObject([{ id: first.conversation_id, title: 'My name is Ann.' }])
    const stolen = await bob.callTool({
      name: 'ask',
      arguments: { question: 'Who am I?', conversation_id: first.conversation_id },
    })
    expect(stolen).toMatchObject({ isError: true })
    expect(textIn(stolen)).not.toContain('Ann')
    const nobody = await connect(undefined, key)
    expect(await nobody.callTool({ name: 'list_conversations', arguments: {} })).toMatchObject({
      isError: true,
    })
    await Promise.all([ann.close(), bob.close(), nobody.close()])
  })
})
