/** What a model may say of the models that it names, and how it is told what is wrong with that. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RawServer, sendJson, startRawServer } from '../models/raw-server'
import { createHistory, createModel, request, unique } from './harness'

let raw: RawServer
let history: string

beforeAll(async () => {
  raw = await startRawServer()
  raw.respond = (response) =>
    sendJson(response, 200, { choices: [{ message: { content: 'Hello.' }, finish_reason: 'stop' }] })
  history = await createHistory()
})
afterAll(() => raw.stop())

describe('a model that names others', () => {
  const refusal = async (properties: Record<string, unknown>): Promise<[number, string]> => {
    const { status, body } = await request('POST', '/conversations/models', {
      model_name: 'openai/x',
      openai_url: raw.url,
      api_key: 'sk-1234567890',
      max_bytes: 16_384,
      history_collection: history,
      ...properties,
    })
    return [status, body.message]
  }
  const NOT_A_LIST = 'Property `fallbacks` is not a list of ids of conversation models.'
  const NOWHERE =
    'Property `rewrite_model` is neither the id of a conversation model nor the name of a model of the same provider.'

  test.each<[Record<string, unknown>, string]>([
    [{ fallbacks: 'm' }, NOT_A_LIST],
    [{ fallbacks: [5] }, NOT_A_LIST],
    [{ fallbacks: [''] }, NOT_A_LIST],
    [{ fallbacks: ['a', 'b', 'c', 'd', 'e', 'f'] }, 'Property `fallbacks` names more than 5 models.'],
    [{ fallbacks: ['nobody'] }, 'Property `fallbacks` names `nobody`, which is no conversation model.'],
    [{ id: 'narcissus', fallbacks: ['narcissus'] }, 'Property `fallbacks` names the model itself.'],
    [{ rewrite_model: 5 }, 'Property `rewrite_model` is not a string.'],
    [{ rewrite_model: 'nobody' }, NOWHERE],
    [{ rewrite_model: 'google/gemini-3-flash' }, NOWHERE],
  ])('%j is told: %s', async (properties, message) => {
    expect(await refusal(properties)).toEqual([400, message])
  })

  test('loses them to null', async () => {
    const id = unique('model')
    const first = { model_name: 'openai/first', openai_url: raw.url, history_collection: history }
    const second = await createModel({ ...first, model_name: 'openai/second' })
    await createModel({
      ...first,
      id,
      fallbacks: [second],
      rewrite_model: 'openai/small',
      temperature: 0.5,
    })
    const { status, body } = await request('PUT', `/conversations/models/${id}`, {
      fallbacks: null,
      rewrite_model: null,
      temperature: null,
    })
    expect(status).toBe(200)
    expect(body).not.toHaveProperty('fallbacks')
    expect(body).not.toHaveProperty('rewrite_model')
    expect(body).not.toHaveProperty('temperature')
  })
})
