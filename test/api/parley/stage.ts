/** What tests of Parley's own routes share: facts to ask about, a history and a model. */
import { expect } from 'vitest'
import { call, type send } from '../typesense/api'
import { HISTORY } from '../typesense/conversing'

export const MODEL = {
  id: 'm',
  model_name: 'local/extractive',
  history_collection: 'history',
  max_bytes: 16_384,
  ttl: 3_600,
}
const FACTS = [
  {
    id: '0',
    text: 'The Eiffel Tower is 330 metres high. Its architect was Stephen Sauvestre.',
    city: 'Paris',
  },
  {
    id: '1',
    text: 'The Brandenburg Gate is 26 metres high. Carl Gotthard Langhans designed it.',
    city: 'Berlin',
  },
]
export const QUESTION = 'How high is the Eiffel Tower?'
export const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
export const NOT_FOUND = [404, { message: 'Conversation not found', code: 'unknown_conversation' }]

export const makeKey = async (body: Record<string, unknown>): Promise<string> => {
  const [status, key] = await call('POST', '/keys', {
    body: { description: 'd', collections: ['*'], ...body },
  })
  expect(status).toBe(201)
  return key.value
}

/** Makes the collections and the model. */
export async function setStage(): Promise<void> {
  await call('POST', '/collections', { body: HISTORY })
  const fields = [
    { name: 'text', type: 'string' },
    { name: 'city', type: 'string', facet: true },
  ]
  for (const name of ['facts', 'more']) await call('POST', '/collections', { body: { name, fields } })
  await call('POST', '/collections', { body: { name: 'numbers', fields: [{ name: 'n', type: 'int32' }] } })
  for (const body of FACTS) await call('POST', '/collections/facts/documents', { body })
  expect((await call('POST', '/conversations/models', { body: MODEL }))[0]).toBe(201)
}

export const ASK = { question: QUESTION, model: 'm', collections: ['facts'] }

/** Asks on Parley's own route. @returns `[status, JSON]` */
export const ask = (body: Record<string, unknown> = {}, options: Parameters<typeof send>[2] = {}) =>
  call('POST', '/conversations', { ...options, body: { ...ASK, ...body } })
