/** POST /a/{assistant}/conversations inside workerd: what a page asks with a key that is bound to the assistant. */
import { env } from 'cloudflare:workers'
import { parse } from 'valibot'
import { beforeAll, describe, expect, it } from 'vitest'
import * as schemas from '../../../src/api/parley/response-schemas'
import { call, FORBIDDEN, send } from '../typesense/api'
import { makeKey, NOT_FOUND, QUESTION, setStage, UUID } from './stage'

const ANOTHER = 'How high is the Brandenburg Gate?'
const VISITOR = { 'x-parley-visitor': 'a-visitor-of-a-page-0123456789-abcdefghij' }
let key: string

beforeAll(async () => {
  await setStage()
  const body = { model: 'm', collections: ['facts'], questions: [QUESTION], title_field: 'city' }
  for (const name of ['guide', 'other']) {
    expect((await call('PUT', `/assistants/${name}`, { body }))[0]).toBe(200)
  }
  key = await makeKey({ actions: ['documents:search'], limits: { assistant: 'guide' } })
})

const askAssistant = (body: Record<string, unknown>, name = 'guide') =>
  call('POST', `/a/${name}/conversations`, { key, headers: VISITOR, body })

const turnsOf = async (id: string): Promise<string[]> => {
  const [status, { turns }] = await call('GET', `/conversations/${id}`)
  expect(status).toBe(200)
  return turns.map(({ question }: { question: string }) => question)
}

describe('asking an assistant', () => {
  it('answers whole, in a conversation that goes on', async () => {
    const [status, first] = await askAssistant({ question: QUESTION, followups: true })
    expect(status).toBe(200)
    parse(schemas.Answer, first)
    expect(first.conversation_id).toMatch(UUID)
    expect(first.answer).toContain('330')
    const [, second] = await askAssistant({ question: ANOTHER, conversation_id: first.conversation_id })
    expect(second).toMatchObject({ turn: 2, conversation_id: first.conversation_id })
  })

  it('keeps its suggestions with the turn, apart from the trace', async () => {
    for (const place of ['Burghausen', 'Windsor', 'Bojnice', 'Eltz', 'Malbork', 'Predjama']) {
      const body = { text: `A castle is in ${place}.`, city: place, title: `Who built the one in ${place}?` }
      expect((await call('POST', '/collections/facts/documents', { body }))[0]).toBe(201)
    }
    const asked = { question: 'Where is a castle?', followups: true }
    const [, { conversation_id: id, followups }] = await askAssistant(asked)
    expect(followups.length).toBeGreaterThan(0)
    const change = (set: string) =>
      env.DB.prepare(`UPDATE turns SET ${set} WHERE conversation_id = ?`).bind(id).run()
    const suggested = async () => (await call('GET', `/conversations/${id}`))[1].turns[0].followups
    expect(await suggested()).toEqual(followups)
    const row = env.DB.prepare('SELECT followups FROM turns WHERE conversation_id = ?').bind(id)
    expect(JSON.parse(String(await row.first('followups')))).toEqual(followups)
    // Rows of earlier versions have suggestions in their traces alone.
    await change('followups = NULL')
    expect(await suggested()).toEqual(followups)
    await change(`followups = '["Who built it?"]', trace = '{}'`)
    expect(await suggested()).toEqual(['Who built it?'])
    await change(`followups = '[]', trace = '{"followups":["Never."]}'`)
    expect(await suggested()).toBeUndefined()
  })

  it('streams the events of POST /conversations', async () => {
    const response = await send('POST', '/a/guide/conversations', {
      key,
      headers: { ...VISITOR, accept: 'text/event-stream' },
      body: { question: QUESTION },
    })
    expect(response.headers.get('content-type')).toContain('text/event-stream')
    expect(response.headers.get('x-parley-conversation-id')).toMatch(UUID)
    const text = await response.text()
    const types = [...text.matchAll(/^event: (\w+)$/gm)].map(([, type]) => type)
    expect(types.slice(0, 2)).toEqual(['question', 'retrieval'])
    expect(types.at(-1)).toBe('done')
  })

  it('replaces a turn, and whatever came after it', async () => {
    const [, { conversation_id: id }] = await askAssistant({
      question: 'Who was the architect of the Eiffel Tower?',
    })
    await askAssistant({ question: QUESTION, conversation_id: id })
    await askAssistant({ question: 'And who designed it?', conversation_id: id })
    const [status] = await askAssistant({ question: ANOTHER, conversation_id: id, replaces: 2 })
    expect(status).toBe(200)
    expect(await turnsOf(id)).toEqual(['Who was the architect of the Eiffel Tower?', ANOTHER])
  })

  it('says what a page needs to show sources', async () => {
    expect(await call('GET', '/a/guide', { key })).toEqual([
      200,
      { name: 'guide', questions: [QUESTION], followups: false, title_field: 'city' },
    ])
  })

  it('refuses what it does not know, and assistants that the key is not bound to', async () => {
    expect(await askAssistant({ question: QUESTION, model: 'm' })).toEqual([
      400,
      { message: expect.stringContaining('model'), code: 'bad_request' },
    ])
    expect(await askAssistant({ question: QUESTION, replaces: 1 })).toEqual([
      400,
      { message: '`replaces` needs the `conversation_id` of the turn.', code: 'bad_request' },
    ])
    expect(await askAssistant({ question: QUESTION }, 'other')).toEqual([
      404,
      { message: 'Assistant not found', code: 'unknown_assistant' },
    ])
    expect(await askAssistant({ question: QUESTION, conversation_id: crypto.randomUUID() })).toEqual(
      NOT_FOUND,
    )
    expect(
      await call('POST', '/a/guide/conversations', { key: 'wrong', body: { question: QUESTION } }),
    ).toEqual([401, { ...FORBIDDEN, code: 'unauthorized' }])
  })
})
