/** OpenSearch's conversational search: pipelines, and searches that are answered. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of connectors look like this
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { KEY, unique, url } from './harness'
import {
  call,
  connect,
  connectorOf,
  PRESIDENTS,
  presidents,
  ragPipeline,
  remoteModel,
} from './opensearch-api'
import { promptOf, type ScriptedLlm, says, startScriptedLlm } from './scripted-llm'

let llm: ScriptedLlm
beforeAll(async () => {
  llm = await startScriptedLlm()
})
afterAll(() => llm.stop())
beforeEach(() => {
  llm.sent.length = 0
  llm.script = { status: 200, body: says('An answer. [1]'), delayMs: 0 }
})

const ML = '/_plugins/_ml'

describe('search pipelines', () => {
  test('P1 to P3: are kept as they were sent', async () => {
    const id = unique('pipeline')
    const { searchPipeline } = connect()
    await searchPipeline.put({ id, body: {} })
    expect((await searchPipeline.get({ id })).body).toEqual({ [id]: {} })
    for (const body of [{ version: 10 }, { version: 9, description: 'x' }, {}]) {
      await searchPipeline.put({ id, body })
      expect((await searchPipeline.get({ id })).body).toEqual({ [id]: body })
    }
    await searchPipeline.delete({ id })
    await expect(searchPipeline.get({ id })).rejects.toMatchObject({ statusCode: 404, meta: { body: {} } })
    await expect(searchPipeline.delete({ id })).rejects.toThrow(/pipeline \[.*\] is missing/)
  })

  test('P4, P6: are checked', async () => {
    const put = async (processor: unknown) => {
      const { status, body } = await call('PUT', `/_search/pipeline/${unique('x')}`, {
        response_processors: [{ retrieval_augmented_generation: processor }],
      })
      return [status, body.error?.type, body.error?.reason, body.error?.property_name]
    }
    const field = 'context_field_list'
    expect(await put({ model_id: 'm' })).toEqual([
      400,
      'parse_exception',
      `[${field}] required property is missing`,
      field,
    ])
    expect(await put({ model_id: 'm', [field]: [] })).toEqual([
      400,
      'parse_exception',
      `[${field}] required property can't be empty.`,
      field,
    ])
    expect((await put({ model_id: 'm', [field]: 'text' }))[2]).toBe(
      `[${field}] property isn't a list, but of type [java.lang.String]`,
    )
    expect((await put({ model_id: 'm', [field]: ['text'], foo: 1, tag: 't' }))[2]).toContain(
      '[retrieval_augmented_generation:t]',
    )
    const { body } = await call('PUT', '/_search/pipeline/x', { invalid_field: {} })
    expect(body.error).toMatchObject({
      type: 'parse_exception',
      reason: expect.stringContaining('[invalid_field]'),
    })
  })
})

const asking = (parameters: Record<string, unknown> = {}, more: Record<string, unknown> = {}) => ({
  query: { match: { text: 'president' } },
  ext: {
    generative_qa_parameters: { llm_model: 'gpt-3.5-turbo', llm_question: 'who is lincoln', ...parameters },
  },
  ...more,
})

describe('a search that is answered', () => {
  let index: string
  let pipeline: string
  beforeAll(async () => {
    index = await presidents()
    pipeline = await ragPipeline(await remoteModel(llm))
  })
  const search = (parameters?: Record<string, unknown>, more?: Record<string, unknown>, id = pipeline) =>
    call('POST', `/${index}/_search?search_pipeline=${id}`, asking(parameters, more))
  const refusal = async (parameters: Record<string, unknown>) => {
    const { status, body } = await search(parameters)
    return [status, body.error?.type, body.error?.reason]
  }

  test('R1: has the hits and the answer', async () => {
    const { body } = await connect().search({
      index,
      search_pipeline: pipeline,
      size: 5,
      body: asking({ context_size: 5, message_size: 5, timeout: 60 }, { _source: ['text'] }) as never,
    })
    const answered = body as typeof body & {
      ext: { retrieval_augmented_generation: Record<string, unknown> }
    }
    expect(answered.hits.hits).toHaveLength(3)
    expect(answered.ext.retrieval_augmented_generation).toMatchObject({
      answer: 'An answer. [1]',
      citations: [{ n: 1, _index: index, _id: expect.any(String), field: 'text' }],
    })
    expect(Object.keys(answered.ext.retrieval_augmented_generation)).not.toContain('message_id')
    expect(answered._shards.total).toBe(1)
  })

  test('cites the index of each hit where several are searched', async () => {
    const other = await presidents()
    for (const n of [1, 2, 4]) {
      llm.script = { status: 200, body: says(`An answer. [${n}]`), delayMs: 0 }
      const path = `/${index},${other}/_search?search_pipeline=${pipeline}`
      const { hits, ext, _shards } = (await call('POST', path, asking({}, { _source: ['text'] }))).body
      expect([_shards.total, hits.hits.length]).toEqual([2, 6])
      const { _index, _id } = hits.hits[n - 1]
      expect(ext.retrieval_augmented_generation.citations).toMatchObject([{ n, _index, _id }])
    }
  })

  test('R3, R4: is a message of its memory, and the next one follows up on it', async () => {
    const { body: made } = await call('POST', `${ML}/memory/`, { name: 'presidents' })
    const memory_id = made.memory_id
    const first = await search({ memory_id, llm_question: 'who is lincoln?' })
    const rag = first.body.ext.retrieval_augmented_generation
    expect(rag.message_id).toBe(rag.interaction_id)
    const { body: message } = await connect().ml.getMessage({ message_id: rag.message_id })
    expect(message).toMatchObject({
      memory_id,
      input: 'who is lincoln?',
      response: 'An answer. [1]',
      origin: 'retrieval_augmented_generation',
      prompt_template: '[]',
    })
    const info = (message as { additional_info: { metadata: string } }).additional_info
    expect(JSON.parse(info.metadata)).toHaveLength(PRESIDENTS.length)
    const { status } = await search({
      conversation_id: memory_id,
      interaction_size: 5,
      llm_question: 'and where?',
    })
    expect(status).toBe(200)
    const prompt = promptOf(llm.sent.at(-1)!)
    expect(prompt.indexOf('who is lincoln?')).toBeGreaterThan(0)
    expect(prompt.indexOf('assistant: An answer. [1]')).toBeGreaterThan(prompt.indexOf('who is lincoln?'))
    expect(prompt.indexOf('QUESTION: and where?')).toBeGreaterThan(prompt.indexOf('assistant:'))
    const old = await call('GET', `${ML}/memory/conversation/${memory_id}`)
    expect(old.body.interactions.map(({ input }: { input: string }) => input)).toEqual([
      'and where?',
      'who is lincoln?',
    ])
    expect(JSON.parse(old.body.interactions[0].additional_info)).toHaveLength(PRESIDENTS.length)
  })

  test('R7, R8: the prompt numbers the texts of the first hits', async () => {
    const both = await ragPipeline(await remoteModel(llm), {
      context_field_list: ['title', 'text', 'absent'],
    })
    const { body } = await search({ context_size: 2 }, {}, both)
    const [first, second] = body.hits.hits
    const prompt = promptOf(llm.sent.at(-1)!)
    expect([...prompt.matchAll(/SEARCH RESULT \d: .*/g)].map(([line]) => line)).toEqual([
      `SEARCH RESULT 1: ${first._source.title}`,
      `SEARCH RESULT 2: ${first._source.text}`,
      `SEARCH RESULT 3: ${second._source.title}`,
      `SEARCH RESULT 4: ${second._source.text}`,
    ])
    expect((await search({ context_size: 0 })).status).toBe(200)
    expect(promptOf(llm.sent.at(-1)!)).not.toContain('SEARCH RESULT')
  })

  test('R9: finds nothing and is answered all the same', async () => {
    const { status, body } = await search({}, { query: { match: { text: 'zebra' } } })
    expect([status, body.hits.total.value]).toEqual([200, 0])
    expect(body.ext.retrieval_augmented_generation.answer).toBe('An answer. [1]')
  })

  test('R10 to R12, R17 to R20: is refused before anything is searched or called', async () => {
    const bare = await call('POST', `/${index}/_search?search_pipeline=${pipeline}`, {
      query: { match_all: {} },
    })
    expect(bare.body.error.reason).toMatch(/^generative_qa_parameters not found\./)
    expect((await refusal({ llm_question: '' }))[2]).toMatch(/llm_question .*must be provided\./)
    expect(await refusal({ llm_model: null })).toEqual([
      400,
      'illegal_argument_exception',
      'llm_model cannot be null.',
    ])
    expect((await refusal({ memory_id: 'unknown' }))[1]).toBe('resource_not_found_exception')
    expect((await refusal({ memory_id: '' }))[2]).toBe('Empty conversation_id is not allowed.')
    expect(await refusal({ context_size: 'abc' })).toEqual([
      400,
      'number_format_exception',
      'For input string: "abc"',
    ])
    expect((await refusal({ message_size: 0 }))[2]).toContain('must be positive')
    expect((await refusal({ message_size: 1, interaction_size: 2 }))[0]).toBe(400)
    expect((await refusal({ llm_messages: [{ content: [] }], llm_question: undefined }))[2]).toBe(
      'message must have role.',
    )
    expect(llm.sent).toEqual([])
    const llm_messages = [{ role: 'user', content: [{ type: 'text', text: 'who?' }] }]
    expect((await search({ llm_messages, llm_question: undefined, context_size: '2' })).status).toBe(200)
  })

  test('R13, R14: the request decides over the pipeline', async () => {
    const own = await ragPipeline(await remoteModel(llm), { llm_model: 'a', system_prompt: 'S' })
    await search({ llm_model: undefined }, {}, own)
    await search({ llm_model: 'b', system_prompt: 'T', user_instructions: 'U' }, {}, own)
    expect(llm.sent.map(({ body }) => body.model)).toEqual(['a', 'b'])
    expect(promptOf(llm.sent[0]!)).toContain('system: S')
    expect(promptOf(llm.sent[1]!)).toMatch(/^system: T\nuser: U/)
  })

  test('R21: a slow model is told of by its deadline, and asked once', async () => {
    llm.script.delayMs = 20_000
    const slow = connect({ maxRetries: 3 }).search({
      index,
      search_pipeline: pipeline,
      body: asking({ timeout: 1 }) as never,
    })
    await expect(slow).rejects.toMatchObject({
      statusCode: 500,
      meta: { body: { error: { type: 'timeout_exception' } } },
    })
    expect(llm.sent).toHaveLength(1)
  })

  test('a provider that fails is told of beside the hits, and never as a 502 to 504', async () => {
    for (const script of [
      { status: 503, body: { error: { message: 'out of order' } } },
      { status: 200, body: { error: { message: 'out of order' } } },
    ]) {
      llm.script = { ...script, delayMs: 0 }
      const { body: made } = await call('POST', `${ML}/memory`, {})
      const { status, body } = await search({ memory_id: made.memory_id })
      expect([status, body.hits.hits.length]).toEqual([200, 3])
      expect(body.ext.retrieval_augmented_generation.error).toContain('out of order')
      const { body: left } = await call('GET', `${ML}/memory/${made.memory_id}/messages`)
      expect(left.messages).toEqual([])
    }
  })

  test('R23 to R25: pipelines by default, by name and inline', async () => {
    const other = unique('qa')
    await connect().indices.create({
      index: other,
      body: { settings: { index: { search: { default_pipeline: pipeline } } } } as never,
    })
    await connect().index({ index: other, id: '1', body: PRESIDENTS[0]! })
    expect((await call('POST', `/${other}/_search`, asking())).body.ext).toBeDefined()
    expect((await call('POST', `/${other}/_search?search_pipeline=_none`, asking())).body.ext).toBeUndefined()
    expect((await search({}, {}, 'nope')).body.error.reason).toBe('Pipeline nope is not defined')
    const { body: all } = await call('GET', `/_search/pipeline/${pipeline}`)
    const inline = await call('POST', `/${index}/_search`, asking({}, { search_pipeline: all[pipeline] }))
    expect(inline.body.ext.retrieval_augmented_generation.answer).toBe('An answer. [1]')
    expect((await search({}, { search_pipeline: all[pipeline] })).body.error.reason).toMatch(
      /^Both named and inline/,
    )
  })

  test('R26, R28: other shapes of providers', async () => {
    const actions = [{ ...connectorOf(llm).actions[0], request_body: '{"prompt": "${parameters.inputs}"}' }]
    const single = await ragPipeline(await remoteModel(llm, { actions }))
    llm.script.body = { result: 'A' }
    expect(
      (await search({ llm_response_field: 'result' }, {}, single)).body.ext.retrieval_augmented_generation
        .answer,
    ).toBe('A')
    llm.script.body = { x: 1 }
    expect(
      (await search({ llm_response_field: 'result' }, {}, single)).body.ext.retrieval_augmented_generation
        .error,
    ).toBe('Unknown error or response.')
    llm.script.body = { text: 'A' }
    expect(
      (await search({ llm_model: 'cohere/x' }, {}, single)).body.ext.retrieval_augmented_generation.answer,
    ).toBe('A')
    expect(llm.sent.at(-1)!.body.prompt).toMatch(/SEARCH RESULT 1: [\s\S]*QUESTION: who is lincoln/)
  })

  test('a follow-up is rewritten before it is searched, where that is asked for', async () => {
    const { body: made } = await call('POST', `${ML}/memory`, {})
    await search({ memory_id: made.memory_id })
    llm.script.body = says('lincoln')
    const llm_question = 'and he?'
    const { body } = await search(
      { memory_id: made.memory_id, llm_question, rewrite_question: true },
      { query: { match: { text: llm_question } } },
    )
    expect(body.ext.retrieval_augmented_generation.rewritten_question).toBe('lincoln')
    expect(body.hits.hits).toMatchObject([{ _source: { title: 'Lincoln' } }])
    const { body: message } = await call(
      'GET',
      `${ML}/memory/message/${body.ext.retrieval_augmented_generation.message_id}`,
    )
    expect(message.input).toBe(llm_question)
  })

  test('streams: the hits, the pieces of the answer, and the whole reply', async () => {
    llm.script.stream = ['An ', 'answer', '. [1]']
    const response = await fetch(`${url}/${index}/_search?search_pipeline=${pipeline}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${KEY}` },
      body: JSON.stringify({ ...asking(), stream: true }),
    })
    expect(response.headers.get('content-type')).toContain('text/event-stream')
    const events = (await response.text())
      .split('\n\n')
      .filter((text) => text.includes('event: '))
      .map((text) => [/event: (.*)/.exec(text)![1], JSON.parse(/data: (.*)/.exec(text)![1]!)] as const)
    expect(events[0]).toMatchObject(['hits', { hits: { hits: [{}, {}, {}] } }])
    expect(
      events
        .filter(([type]) => type === 'answer')
        .map(([, { text }]) => text)
        .join(''),
    ).toBe('An answer. [1]')
    expect(events.at(-1)).toMatchObject([
      'done',
      { ext: { retrieval_augmented_generation: { answer: 'An answer. [1]' } } },
    ])
  })
})

test('D16: a hybrid query joins words and meaning', async () => {
  const index = unique('hybrid')
  const { status } = await call('PUT', `/${index}`, {
    mappings: { properties: { text: { type: 'text' }, vector: { type: 'knn_vector', dimension: 2 } } },
  })
  expect(status).toBe(200)
  const documents = [
    { text: 'apple' },
    { text: 'apple tree', vector: [0, 1] },
    { text: 'pear', vector: [1, 0.1] },
  ]
  for (const [at, body] of documents.entries()) await connect().index({ index, id: String(at), body })
  const normalization = {
    'normalization-processor': {
      normalization: { technique: 'min_max' },
      combination: { technique: 'arithmetic_mean', parameters: { weights: [0.111, 0.889] } },
    },
  }
  const { body } = await call('POST', `/${index}/_search`, {
    search_pipeline: { phase_results_processors: [normalization] },
    query: {
      hybrid: { queries: [{ match: { text: 'apple' } }, { knn: { vector: { vector: [1, 0], k: 5 } } }] },
    },
  })
  const scores = body.hits.hits.map(({ _id, _score }: { _id: string; _score: number }) => [_id, _score])
  // The best of a query has its weight, and the last one next to nothing.
  expect(scores).toEqual([
    ['2', expect.closeTo(0.889, 3)],
    ['0', expect.closeTo(0.111, 3)],
    ['1', expect.closeTo(0.001, 3)],
  ])
})
