/** Cases of conversational search that no other file has, by their numbers in the contract: pipelines, RAG, memory, models. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of connectors look like this
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { unique } from './harness'
import {
  call,
  connect,
  connectorOf,
  getWith,
  presidents,
  ragPipeline,
  remoteModel,
  userKey,
} from './opensearch-api'
import { promptOf, type ScriptedLlm, says, startScriptedLlm } from './scripted-llm'

const ML = '/_plugins/_ml'
const MEMORY = `${ML}/memory`
const QUESTION = 'who is lincoln'

let llm: ScriptedLlm
let index: string
let pipeline: string
beforeAll(async () => {
  llm = await startScriptedLlm()
  index = await presidents()
  pipeline = await ragPipeline(await remoteModel(llm))
})
afterAll(() => llm.stop())
beforeEach(() => {
  llm.sent.length = 0
  llm.script = { status: 200, body: says('An answer. [1]'), delayMs: 0 }
})

const body = (parameters: Record<string, unknown> = {}) => ({
  query: { match: { text: 'president' } },
  ext: { generative_qa_parameters: { llm_model: 'gpt-4o', llm_question: QUESTION, ...parameters } },
})

const path = (name = pipeline) => `/${index}/_search?search_pipeline=${name}`

const newMemory = async (): Promise<string> => (await call('POST', MEMORY, {})).body.memory_id

describe('memory', () => {
  test('A9, A21: what an interaction does not say is null, numbers are texts, and unknown keys are left out', async () => {
    const key = await userKey()
    const { body: made } = await call('POST', `${MEMORY}/conversation`, undefined, key)
    const one = `${MEMORY}/conversation/${made.conversation_id}`
    await call('POST', one, { input: 'q', response: 5, prompt: 'unknown' }, key)
    const { body: listed } = await call('GET', one, undefined, key)
    expect(listed.interactions).toEqual([
      {
        conversation_id: made.conversation_id,
        interaction_id: expect.any(String),
        create_time: expect.any(String),
        input: 'q',
        prompt_template: null,
        response: '5',
        origin: null,
      },
    ])
    const nested = await call('POST', one, { input: { text: 'q' } }, key)
    expect([nested.status, nested.body.error.type]).toEqual([400, 'parse_exception'])
  })

  test('B17: memories are searched by a GET with a body', async () => {
    const id = await newMemory()
    const { status, body: found } = await getWith(`${MEMORY}/_search`, {
      query: { ids: { values: [id] } },
      size: 1000,
    })
    expect([status, found.hits.hits]).toMatchObject([200, [{ _id: id, _index: '.plugins-ml-memory-meta' }]])
  })

  test('B26: a slash at the end makes no difference', async () => {
    const key = await userKey()
    const { status, body: made } = await call('POST', `${MEMORY}/`, { name: 'slash' }, key)
    expect(status).toBe(200)
    expect(await call('GET', `${MEMORY}/`, undefined, key)).toEqual(await call('GET', MEMORY, undefined, key))
    const list = await call('GET', `${MEMORY}/${made.memory_id}/messages/`, undefined, key)
    expect(list).toEqual({ status: 200, body: { messages: [] } })
  })
})

describe('search pipelines', () => {
  test('P1, P5: are listed with all others, as they were sent', async () => {
    const id = unique('seed')
    const rag = {
      tag: 'openai_pipeline_demo',
      description: 'Demo pipeline Using OpenAI Connector',
      model_id: 'a-model-that-may-come-later',
      context_field_list: ['text'],
      system_prompt: 'You are a helpful assistant',
      user_instructions: 'Generate a concise and informative answer in less than 100 words',
    }
    const sent = { version: 3, response_processors: [{ retrieval_augmented_generation: rag }] }
    const { searchPipeline } = connect()
    await searchPipeline.put({ id, body: sent })
    expect((await searchPipeline.get({ id })).body).toEqual({ [id]: sent })
    expect((await searchPipeline.get({})).body).toMatchObject({ [id]: sent })
    expect(Object.keys((await searchPipeline.get({ id: `${id.slice(0, -1)}*` })).body)).toContain(id)
  })

  test('P9, P10: a name may need escapes, and one that is missing is told of', async () => {
    const { searchPipeline } = connect()
    const id = `${unique('a b')}/ö%`
    await searchPipeline.put({ id, body: { description: 'escaped' } })
    expect((await searchPipeline.get({ id })).body).toEqual({ [id]: { description: 'escaped' } })
    await searchPipeline.delete({ id })
    await expect(searchPipeline.delete({ id })).rejects.toMatchObject({
      statusCode: 404,
      meta: {
        body: { error: { type: 'resource_not_found_exception', reason: `pipeline [${id}] is missing` } },
      },
    })
  })
})

describe('a search that is answered', () => {
  test('R2: is the same as a GET with a body', async () => {
    const posted = await call('POST', path(), body())
    const got = await getWith(path(), body())
    const timeless = ({ took: _, ...rest }: Record<string, unknown>) => rest
    expect([got.status, timeless(got.body)]).toEqual([200, timeless(posted.body)])
  })

  test('R6: has the latest messages in its prompt, in the order in which they were said', async () => {
    const memory_id = await newMemory()
    for (let at = 1; at <= 12; at++)
      await call('POST', `${MEMORY}/${memory_id}/messages`, {
        input: `question ${at}.`,
        response: `reply ${at}.`,
      })
    const { status } = await call('POST', path(), body({ memory_id, message_size: 3 }))
    expect(status).toBe(200)
    const prompt = promptOf(llm.sent.at(-1)!)
    const said = [...prompt.matchAll(/(?:question|reply) \d+\./g)].map(([text]) => text)
    expect(said).toEqual([10, 11, 12].flatMap((at) => [`question ${at}.`, `reply ${at}.`]))
  })

  test('R11, R30: takes a question or messages, and names what is missing of them', async () => {
    const reason = async (parameters: Record<string, unknown>) =>
      (await call('POST', path(), body(parameters))).body.error?.reason
    expect(await reason({ llm_question: undefined })).toMatch(/llm_question .*must be provided\.$/)
    const of = (message: unknown) => reason({ llm_question: undefined, llm_messages: [message] })
    expect(await of({ role: 'user', content: [] })).toBe('message must have content.')
    expect(await of({ role: 'user', content: [{ image: { format: 'png' } }] })).toBe(
      'data or url not found in imageBlock.',
    )
    expect(llm.sent).toEqual([])
  })

  test('R14, R29: keeps the prompts of its pipeline and the texts of its messages', async () => {
    const own = await ragPipeline(await remoteModel(llm), { system_prompt: 'S', user_instructions: 'I' })
    const memory_id = await newMemory()
    const llm_messages = [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'who?' },
          { type: 'text', text: 'and when?' },
        ],
      },
    ]
    const asked = { memory_id, llm_messages, llm_question: undefined, system_prompt: 'T' }
    const { body: answered } = await call('POST', path(own), body(asked))
    const { message_id } = answered.ext.retrieval_augmented_generation
    const { body: message } = await connect().ml.getMessage({ message_id })
    expect(message).toMatchObject({
      input: 'who?\nand when?',
      prompt_template: JSON.stringify([
        { role: 'system', content: 'S' },
        { role: 'user', content: 'I' },
      ]),
    })
  })

  test('R31: says how long it took, and how many shards it has', async () => {
    llm.script.delayMs = 300
    const before = Date.now()
    const { body: answered } = await connect().search({
      index,
      search_pipeline: pipeline,
      body: body() as never,
    })
    expect(answered.took).toBeGreaterThanOrEqual(300)
    expect(answered.took).toBeLessThanOrEqual(Date.now() - before)
    expect(answered._shards).toEqual({ total: 1, successful: 1, skipped: 0, failed: 0 })
  })
})

describe('connectors and models', () => {
  test.each([
    ['action_type', "action type can't be null"],
    ['url', "url can't be null"],
    ['method', "method can't be null"],
  ])('K4: an action without its %s is refused', async (name, reason) => {
    const actions = [{ ...connectorOf(llm).actions[0], [name]: undefined }]
    const { status, body: refused } = await call(
      'POST',
      `${ML}/connectors/_create`,
      connectorOf(llm, { actions }),
    )
    expect([status, refused.error.reason]).toEqual([400, reason])
  })

  test.each(['true', undefined])(
    'K12: what looks like a placeholder in a prompt is a text (%s)',
    async (skips) => {
      const parameters = {
        ...connectorOf(llm).parameters,
        ...(skips && { skip_validating_missing_parameters: skips }),
      }
      const model = await remoteModel(llm, { parameters })
      const messages = [{ role: 'user', content: 'Say ${parameters.test} and ${parameters.model}' }]
      const { status } = await call('POST', `${ML}/models/${model}/_predict`, { parameters: { messages } })
      expect([status, llm.sent[0]?.body.messages]).toEqual([200, messages])
    },
  )

  test('a model that is not deployed is asked all the same, and one that is unknown is told of', async () => {
    const { body: made } = await call('POST', `${ML}/connectors/_create`, connectorOf(llm))
    const { body: model } = await call('POST', `${ML}/models/_register`, {
      name: 'chat',
      function_name: 'remote',
      connector_id: made.connector_id,
    })
    const parameters = { messages: [] }
    const { status } = await call('POST', `${ML}/_predict/remote/${model.model_id}`, { parameters })
    expect(status).toBe(200)
    const unknown = await call('POST', `${ML}/models/none/_predict`, { parameters })
    expect([unknown.status, unknown.body.error.type]).toEqual([404, 'status_exception'])
  })
})
