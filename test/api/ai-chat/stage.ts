/** What tests of the AI Chat Protocol's routes share. */
import { expect } from 'vitest'
import { QUESTION, setStage } from '../parley/stage'
import { call, send } from '../typesense/api'

const JSON_TYPE = { 'content-type': 'application/json' }
export const SDK = { ...JSON_TYPE, 'user-agent': 'ts-http-runtime/1.0.0' }

export type Options = Parameters<typeof send>[2]

export const user = (content: unknown) => ({ role: 'user', content })
export const post = (path: string, body: unknown, { headers, ...options }: Options = {}) =>
  send('POST', path, { ...options, body, headers: { ...JSON_TYPE, ...headers } })

/** A question's answer, as JSON. */
export const ask = async (parts: Record<string, unknown> = {}, options: Options = {}, path = '/chat') => {
  const response = await post(path, { messages: [user(QUESTION)], ...parts }, options)
  // biome-ignore lint/suspicious/noExplicitAny: what came back is what the tests look into
  return [response.status, await response.json<any>()] as const
}

export const override = (overrides: Record<string, unknown>, options?: Options) =>
  ask({ context: { overrides } }, options)

/** The lines of a stream. */
export const lines = async (
  parts: Record<string, unknown> = {},
  options: Options = {},
  path = '/chat/stream',
) => {
  const response = await post(path, { messages: [user(QUESTION)], ...parts }, options)
  const text = await response.text()
  expect([response.status, text.at(-1)]).toEqual([200, '\n'])
  return {
    type: response.headers.get('content-type'),
    lines: text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line)),
  }
}

const PLANS = [
  {
    id: 'p1',
    sourcepage: 'Plan.pdf#page=1',
    text: 'The plan covers dental care.',
    category: 'health',
    tenant: 'a',
  },
  {
    id: 'p2',
    sourcepage: 'Plan.pdf#page=2',
    text: 'The plan covers hearing care.',
    category: 'health',
    tenant: 'a',
  },
  {
    id: 'p3',
    sourcepage: 'Planning.pdf#page=1',
    text: 'Planning permission takes care and time.',
    category: 'city',
    tenant: 'b',
  },
  { id: 'weird/ [id]?#:', text: 'The plan of nobody covers travel care.', category: 'x', tenant: 'b' },
]

/** Makes collections, a model and assistants. */
export async function setChatStage(): Promise<void> {
  await setStage()
  const fields = [
    { name: 'text', type: 'string' },
    { name: 'sourcepage', type: 'string', optional: true },
    { name: 'category', type: 'string', facet: true },
    { name: 'tenant', type: 'string', facet: true },
    { name: 'secret', type: 'string', optional: true },
  ]
  await call('POST', '/collections', { body: { name: 'plans', fields } })
  for (const body of PLANS)
    await call('POST', '/collections/plans/documents', { body: { ...body, secret: 'hush' } })
  const embed = { from: ['text'], model_config: { model_name: 'ts/all-MiniLM-L12-v2' } }
  const vectors = [
    { name: 'text', type: 'string' },
    { name: 'embedding', type: 'float[]', embed },
  ]
  await call('POST', '/collections', { body: { name: 'vectors', fields: vectors } })
  await call('POST', '/collections/vectors/documents', {
    body: { id: 'v', text: 'The tower is 330 metres high.' },
  })
  const assistants = {
    default: { model: 'm', collections: ['facts'] },
    plans: {
      model: 'm',
      searches: [{ collection: 'plans', query_by: 'text', exclude_fields: 'secret' }],
      citation_field: 'sourcepage',
    },
    vectors: { model: 'm', collections: ['vectors'] },
    both: { model: 'm', collections: ['facts', 'plans'] },
    strict: { model: 'm', collections: ['facts'], overrides: [], strict: true },
    open: { model: 'm', collections: ['plans'], overrides: ['filter_by'] },
  }
  for (const [name, body] of Object.entries(assistants)) {
    expect((await call('PUT', `/assistants/${name}`, { body }))[0]).toBe(200)
  }
}
