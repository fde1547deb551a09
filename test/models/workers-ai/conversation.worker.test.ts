/** A deployment that runs on Workers AI: conversations through the Worker's own binding, without a key. */
import { beforeAll, describe, expect, it } from 'vitest'
import { call } from '../../api/typesense/api'
import { askingBySearch, HISTORY } from '../../api/typesense/conversing'
import { bindWorkersAi } from './bind'
import { WorkersAi } from './workers-ai'

const NATIVE = '@cf/meta/llama-3.2-1b-instruct'
const OPENAI = '@cf/zai-org/glm-4.7-flash'

const ai = new WorkersAi({
  answer: ([message]) => ({
    text: message!.content.includes('<Standalone question>') ? 'who directed Heat' : 'Ridley Scott did.',
    usage: [20, 4],
  }),
})

beforeAll(async () => {
  bindWorkersAi(ai)
  await call('POST', '/collections', { body: { name: 'films', fields: [{ name: 'title', type: 'string' }] } })
  await call('POST', '/collections/films/documents', { body: { title: 'Alien' } })
  await call('POST', '/collections', { body: HISTORY })
})

const { ask } = askingBySearch({ collection: 'films', query_by: 'title' })

describe.each([NATIVE, OPENAI])('a model of the binding, %s', (name) => {
  const id = name.replaceAll('/', '-')

  beforeAll(async () => {
    const [status] = await call('POST', '/conversations/models', {
      body: { id, model_name: `cloudflare/${name}`, history_collection: 'history', max_bytes: 16_384 },
    })
    expect(status).toBe(201)
  })

  it('holds a conversation', async () => {
    ai.calls.length = 0
    const [, first] = await ask({ q: 'who directed Alien', conversation_model_id: id })
    expect(first.conversation.answer).toBe('Ridley Scott did.')
    const [, second] = await ask({
      q: 'and Heat?',
      conversation_model_id: id,
      conversation_id: first.conversation.conversation_id,
    })
    expect(second.conversation.conversation_history.conversation).toEqual([
      { user: 'who directed Alien' },
      { assistant: 'Ridley Scott did.' },
      { user: 'and Heat?' },
      { assistant: 'Ridley Scott did.' },
    ])
    expect(ai.calls.map(({ model, inputs }) => [model, inputs.stream])).toEqual([
      [name, true],
      [name, true],
      [name, true],
    ])
  })

  it('tells a caller what the platform said, and keeps nothing of it', async () => {
    ai.failNext(3036)
    expect(await ask({ q: 'who directed Heat', conversation_model_id: id })).toEqual([
      400,
      {
        message: expect.stringMatching(/^Cloudflare API error: 3036: You have used up your daily free alloc/),
      },
    ])
  })
})

it('a model that the platform does not serve is refused when it is made', async () => {
  const model_name = 'cloudflare/@cf/nobody/nothing'
  const body = { model_name, history_collection: 'history', max_bytes: 16_384 }
  expect(await call('POST', '/conversations/models', { body })).toEqual([
    400,
    { message: 'Cloudflare API error: 5007: No such model @cf/nobody/nothing or task' },
  ])
})
