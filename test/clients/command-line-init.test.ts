/** `parley init`, as a user runs it. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { init } from '../../scripts/parley/commands/init.mjs'
import { Server } from '../../scripts/parley/server.mjs'
import { serve } from '../serve'
import { KEY, request, unique, url } from './harness'
import { runParley, writeIn } from './run-parley'

let folder = ''
/** Makes a collection with a document. */
async function fill(name: string): Promise<void> {
  await request('POST', '/collections', { name, fields: [{ name: 'text', type: 'string' }] })
  await request('POST', `/collections/${name}/documents`, { text: 'Returns are free for thirty days.' })
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'parley-init-'))
  // The only collection with documents would be taken.
  for (const name of ['one', 'another']) await fill(unique(name))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const parley = (...args: string[]) => runParley(folder, args)
const write = (path: string, text: string | Uint8Array) => writeIn(folder, path, text)

test('init makes all that a page needs, once; its key asks that assistant and nothing else', async () => {
  const name = unique('shop')
  const made = await parley('init', '--name', name, '--json')
  expect(made.code).toBe(0)
  expect(made.json.snippet).toContain(`<parley-chat assistant="${name}" key="${made.json.page_key}">`)
  await request('POST', `/collections/${name}/documents`, {
    title: 'Returns',
    text: 'Returns are free for thirty days.',
  })
  const answer = await request(
    'POST',
    '/v1/chat/completions',
    { model: name, messages: [{ role: 'user', content: 'How long are returns free?' }] },
    made.json.page_key,
  )
  expect(answer.body.choices[0].message.content).toContain('thirty days')
  expect((await request('GET', '/collections', undefined, made.json.page_key)).status).toBe(401)
  expect((await parley('init', '--name', name, '--json')).json).toMatchObject({ made: [] })
})

test('init takes a collection that is there, and a model of any server that speaks OpenAI', async () => {
  const collection = unique('Shop_Pages')
  write('init/returns.md', '# Returns\n\nReturns are free for thirty days.')
  await parley('import', 'init', '--into', collection, '--no-assistant')
  const llm = await serve((incoming, outgoing) => {
    outgoing.setHeader('content-type', 'application/json')
    if (incoming.url === '/v1/models') return outgoing.end(JSON.stringify({ data: [{ id: 'small:1b' }] }))
    outgoing.end(JSON.stringify({ choices: [{ message: { content: 'Hello.' }, finish_reason: 'stop' }] }))
  })
  const address = llm.url
  const made = await parley('init', '--collection', collection, '--model-url', `${address}/v1/`, '--json')
  expect(made.err).not.toContain('empty')
  expect(made.json).toMatchObject({
    name: collection.toLowerCase().replaceAll('_', '-'),
    collection,
    documents: 1,
  })
  const model = await request('GET', `/conversations/models/${made.json.name}`)
  expect(model.body).toMatchObject({ model_name: 'vllm/small:1b', vllm_url: address })
  expect((await request('GET', `/assistants/${made.json.name}`)).body.collections).toEqual([collection])
  await llm.stop()
  expect((await parley('init', '--name', unique('no'), '--model-url', address)).err).toContain(
    'could not be listed',
  )
})

test('init with a name takes the only collection that has documents, and makes one where there are several', async () => {
  const prefix = unique('only')
  /** Without the collections of other tests. */
  class Alone extends Server {
    override async call(...sent: Parameters<Server['call']>) {
      const answer = await super.call(...sent)
      return sent[1] === '/collections' && sent[0] === 'GET'
        ? answer.filter(({ name }: { name: string }) => name.startsWith(prefix))
        : answer
    }
  }
  const made = (name: string) =>
    init(
      new Alone({ url, key: KEY }),
      { name: `${prefix}-${name}`, model: 'local/extractive', embedding: 'ts/all-MiniLM-L12-v2' },
      () => {},
    )
  await request('POST', '/collections', {
    name: `${prefix}_empty`,
    fields: [{ name: 'text', type: 'string' }],
  })
  await fill(`${prefix}_pages`)
  expect(await made('shop')).toMatchObject({ collection: `${prefix}_pages`, documents: 1 })
  await fill(`${prefix}_more`)
  expect(await made('other')).toMatchObject({ collection: `${prefix}-other`, documents: 0 })
})

test('init leaves nothing half-made, and warns of an empty collection', async () => {
  const name = unique('half')
  const failed = await parley(
    'init',
    '--name',
    name,
    '--model',
    'openai/x',
    '--model-key',
    'sk-x',
    '--model-url',
    'http://127.0.0.1:9',
  )
  expect(failed.code).not.toBe(0)
  for (const path of [`/collections/${name}`, `/collections/${name}_history`, `/assistants/${name}`])
    expect((await request('GET', path)).status).toBe(404)
  expect((await parley('init', '--name', name)).err).toMatch(
    new RegExp(`Collection ${name} is empty: .*--collection`),
  )
  expect((await parley('init', '--name', unique('gone'), '--collection', 'nowhere-x')).err).toContain(
    'There is no collection nowhere-x.',
  )
})
