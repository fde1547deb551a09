/** OpenSearch's ML plugin: connectors, model groups, models, tasks and predictions. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of connectors look like this
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { request, unique } from './harness'
import { call, connectorOf, presidents, ragPipeline, remoteModel } from './opensearch-api'
import { type ScriptedLlm, says, startScriptedLlm } from './scripted-llm'

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

describe('connectors and models', () => {
  test('K1: a connector comes back without its credential', async () => {
    const { body: made } = await call('POST', `${ML}/connectors/_create`, connectorOf(llm))
    const { body } = await call('GET', `${ML}/connectors/${made.connector_id}`)
    expect(body).toMatchObject({ name: 'Chat', version: '2', parameters: { temperature: '0' } })
    const { body: found } = await call('POST', `${ML}/connectors/_search`, {
      query: { match_all: {} },
      size: 1000,
    })
    expect(JSON.stringify([body, found])).not.toMatch(/credential"|very-secret/)
    const { body: gone } = await call('DELETE', `${ML}/connectors/${made.connector_id}`)
    expect(gone.result).toBe('deleted')
    expect((await call('GET', `${ML}/connectors/${made.connector_id}`)).status).toBe(404)
  })

  const predict = (changes: Record<string, unknown>) => [
    { ...connectorOf({ host: 'x' }).actions[0], ...changes },
  ]

  test.each([
    ['a host that nobody allowed', { actions: predict({ url: 'https://evil.example/v1' }) }],
    ['a host out of a parameter', { parameters: { endpoint: 'evil.example' } }],
    ['the metadata of a cloud', { parameters: { endpoint: '169.254.169.254' } }],
    ['a user name before the host', { parameters: { endpoint: '127.0.0.1@evil.example' } }],
  ])('K3: a connector may not call %s', async (_, changes) => {
    const { status, body } = await call('POST', `${ML}/connectors/_create`, connectorOf(llm, changes))
    expect([status, body.error.reason]).toEqual([
      400,
      expect.stringContaining('trusted connector endpoint regex'),
    ])
  })

  test.each([
    ['name', 'Connector name is null'],
    ['version', 'Connector version is null'],
    ['protocol', 'Connector protocol is null'],
    ['credential', 'Connector credential is null or empty list'],
    ['actions', 'No actions configured for this connector'],
  ])('K4: a connector without its %s is refused', async (name, reason) => {
    const { status, body } = await call(
      'POST',
      `${ML}/connectors/_create`,
      connectorOf(llm, { [name]: undefined }),
    )
    expect([status, body.error.reason]).toEqual([400, reason])
  })

  test('K5, K6: groups, registering, tasks and deploying', async () => {
    const name = unique('group')
    const group = await call('POST', `${ML}/model_groups/_register`, { name, description: 'd' })
    expect(group.body).toEqual({ model_group_id: expect.any(String), status: 'CREATED' })
    const again = await call('POST', `${ML}/model_groups/_register`, { name })
    expect([again.status, again.body.error.reason]).toEqual([
      400,
      `The name you provided is already being used by a model group with ID: ${group.body.model_group_id}.`,
    ])
    const { body: made } = await call('POST', `${ML}/connectors/_create`, connectorOf(llm))
    const { body: registered } = await call('POST', `${ML}/models/_register`, {
      name: 'chat',
      function_name: 'remote',
      model_group_id: group.body.model_group_id,
      description: 'd',
      connector_id: made.connector_id,
    })
    const { body: task } = await call('GET', `${ML}/tasks/${registered.task_id}`)
    expect(task).toMatchObject({
      state: 'COMPLETED',
      model_id: registered.model_id,
      task_type: 'REGISTER_MODEL',
    })
    const { body: deployed } = await call('POST', `${ML}/models/${task.model_id}/_deploy`)
    expect(deployed).toMatchObject({ status: 'COMPLETED', task_id: expect.any(String) })
    const { body: model } = await call('GET', `${ML}/models/${task.model_id}`)
    expect(model).toMatchObject({
      algorithm: 'REMOTE',
      model_state: 'DEPLOYED',
      connector_id: made.connector_id,
    })
    const { body: found } = await call('POST', `${ML}/models/_search`, {
      query: {
        bool: {
          must_not: { exists: { field: 'chunk_number' } },
          must: [{ term: { algorithm: 'REMOTE' } }, { ids: { values: [task.model_id] } }],
        },
      },
    })
    expect(found.hits.hits).toMatchObject([{ _id: task.model_id, _source: { name: 'chat' } }])
    expect((await call('DELETE', `${ML}/models/${task.model_id}`)).status).toBe(400)
  })

  test('a model is renamed, and goes by the names of its routes before 2.7', async () => {
    const uploading = { name: 'local', version: '1', model_format: 'TORCH_SCRIPT' }
    const { body: uploaded } = await call('POST', `${ML}/models/_upload`, uploading)
    const id = uploaded.model_id
    expect((await call('POST', `${ML}/models/${id}/_load`)).body).toMatchObject({ status: 'COMPLETED' })
    expect((await call('GET', `${ML}/profile/models/${id}`)).body).toEqual({
      nodes: { parley: { models: { [id]: { model_state: 'DEPLOYED', worker_nodes: ['parley'] } } } },
    })
    expect((await call('GET', `${ML}/profile/tasks`)).body).toEqual({})
    const { body: changed } = await call('PUT', `${ML}/models/${id}`, { name: 'renamed' })
    expect(changed).toMatchObject({ _id: id, result: 'updated' })
    const { body: model } = await call('GET', `${ML}/models/${id}`)
    expect(model).toMatchObject({ name: 'renamed', model_state: 'DEPLOYED', algorithm: 'TEXT_EMBEDDING' })
    const faulty = await call('PUT', `${ML}/models/${id}`, { model_group_id: 'nobody' })
    expect([faulty.status, faulty.body.error.reason]).toEqual([404, expect.stringContaining('nobody')])
    expect((await call('PUT', `${ML}/models/${id}`, { name: ' ' })).status).toBe(400)
    expect((await call('POST', `${ML}/models/_unload`, { model_ids: [id] })).body).toEqual({
      parley: { stats: { [id]: 'undeployed' } },
    })
    expect((await call('POST', `${ML}/models/_undeploy`, {})).status).toBe(400)
    expect((await call('GET', `${ML}/profile/models/${id}`)).body).toEqual({})
    const { body: stats } = await call('GET', `${ML}/stats/ml_model_count,ml_model_index_status`)
    expect(stats).toEqual({ ml_model_count: expect.any(Number), ml_model_index_status: 'green', nodes: {} })
    expect((await call('GET', `${ML}/parley/stats`)).body).toMatchObject({ nodes: {} })
    expect((await call('GET', `${ML}/stats/moods`)).status).toBe(400)
    expect((await call('GET', `${ML}/tools`)).body).toContainEqual({
      name: 'MLModelTool',
      type: 'MLModelTool',
      version: '1',
      description: 'Asks a model.',
    })
    expect((await call('GET', `${ML}/tools/PPLTool`)).status).toBe(404)
  })

  test('K7, K10: what is missing is named', async () => {
    const { body } = await call('POST', `${ML}/models/_register`, { name: 'chat', function_name: 'remote' })
    expect(body.error.reason).toMatch(/^You must provide connector content/)
    for (const kind of ['tasks', 'models', 'connectors'])
      expect(await call('GET', `${ML}/${kind}/none`)).toMatchObject({ status: 404, body: { status: 404 } })
  })

  test("K8: a prediction is the provider's own reply", async () => {
    const model = await remoteModel(llm)
    const parameters = { messages: [{ role: 'user', content: 'a "quoted" ${parameters.endpoint}\n' }] }
    const { body } = await call('POST', `${ML}/models/${model}/_predict`, { parameters })
    expect(body.inference_results[0]).toEqual({
      output: [{ name: 'response', dataAsMap: says('An answer. [1]') }],
      status_code: 200,
    })
    expect(llm.sent).toMatchObject([
      {
        headers: { authorization: 'Bearer sk-very-secret' },
        body: { model: 'gpt-3.5-turbo', temperature: 0, messages: parameters.messages },
      },
    ])
  })

  test('K9: a placeholder that nothing fills is named', async () => {
    const actions = predict({ request_body: '{"k": "${parameters.topk}"}', url: `${llm.url}/v1` })
    const model = await remoteModel(llm, { actions })
    const { status, body } = await call('POST', `${ML}/models/${model}/_predict`, { parameters: {} })
    expect([status, body.error.reason]).toEqual([
      400,
      'Some parameter placeholder not filled in payload: topk',
    ])
    expect(llm.sent).toEqual([])
  })

  test('a request cannot send the credential elsewhere, and no error tells it', async () => {
    const model = await remoteModel(llm)
    for (const endpoint of ['api.openai.com', `127.0.0.1:1/x?`, `${llm.host}@127.0.0.1:9`]) {
      const { status, body } = await call('POST', `${ML}/models/${model}/_predict`, {
        parameters: { endpoint, messages: [] },
      })
      expect(status).toBe(400)
      expect(JSON.stringify(body)).not.toContain('very-secret')
    }
    expect(llm.sent).toEqual([])
    llm.script = { status: 401, body: { error: { message: 'Wrong key sk-very-secret' } }, delayMs: 0 }
    const refused = await call('POST', `${ML}/models/${model}/_predict`, { parameters: { messages: [] } })
    expect(refused.status).toBe(401)
    expect(refused.body.error.reason).toContain('Error from remote service: Wrong key')
    expect(JSON.stringify(refused.body)).not.toContain('very-secret')
    llm.script = { status: 503, body: 'busy', delayMs: 0 }
    expect(
      (await call('POST', `${ML}/models/${model}/_predict`, { parameters: { messages: [] } })).status,
    ).toBe(500)
  })

  test('a credential comes back from no route, in no reply and in no error', async () => {
    const SECRET = 'sk-"very"-secret-54321'
    const credential = { openAI_key: SECRET }
    const { body: made } = await call('POST', `${ML}/connectors/_create`, connectorOf(llm, { credential }))
    const one = `${ML}/connectors/${made.connector_id}`
    const register = { name: 'chat', function_name: 'remote', connector_id: made.connector_id }
    const moved = { parameters: { endpoint: '127.0.0.1:9', model: 'm', temperature: 0 } }
    const unlike = { name: '', credential }
    const texts: unknown[] = [
      await call('GET', one),
      await call('PUT', one, { description: 'changed' }),
      await call('PUT', one, moved),
      await call('PUT', one, unlike),
      await call('POST', `${ML}/connectors/_create`, connectorOf(llm, unlike)),
      await call('POST', `${ML}/connectors/_create`, connectorOf({ host: 'evil.example' }, { credential })),
      await call('POST', `${ML}/connectors/_search`, {
        size: 1000,
        _source: ['credential', 'sealed', 'name'],
      }),
      await call('GET', `${ML}/models/none`),
    ]
    expect(texts[1]).toMatchObject({ status: 200 })
    expect(texts[2]).toMatchObject({
      status: 400,
      body: { error: { reason: expect.stringContaining('Send [credential] again') } },
    })
    for (const field of ['credential.openAI_key', 'sealed']) {
      const { body } = await call('POST', `${ML}/connectors/_search`, { query: { exists: { field } } })
      expect(body.hits.hits).toEqual([])
    }
    const { body: model } = await call('POST', `${ML}/models/_register?deploy=true`, register)
    texts.push(model, await call('GET', `${ML}/models/${model.model_id}`))
    texts.push(await call('POST', `${ML}/models/_search`, { size: 1000 }))
    texts.push(await call('DELETE', one))
    const index = await presidents()
    const pipeline = await ragPipeline(model.model_id)
    const memory = (await call('POST', `${ML}/memory`, {})).body.memory_id
    const asking = (more: Record<string, unknown> = {}) => ({
      query: { match: { text: 'president' } },
      ext: { generative_qa_parameters: { llm_question: 'who?', llm_model: 'm', memory_id: memory, ...more } },
    })
    // A server that shows what it was sent: in an error, in a reply, and in its answer.
    const echo = { headers: { authorization: `Bearer ${SECRET}` } }
    const shown = `They sent ${SECRET}`
    for (const script of [
      { status: 401, body: { error: { message: shown } } },
      { status: 500, body: shown },
      { status: 200, body: echo },
      { status: 200, body: { ...(says(shown) as object), text: shown } },
    ]) {
      llm.script = { ...script, delayMs: 0 }
      texts.push(
        await call('POST', `${ML}/models/${model.model_id}/_predict`, { parameters: { messages: [] } }),
        await call('POST', `/${index}/_search?search_pipeline=${pipeline}`, asking()),
        await call(
          'POST',
          `/${index}/_search?search_pipeline=${pipeline}`,
          asking({ llm_response_field: 'text' }),
        ),
      )
    }
    expect(llm.sent.length).toBeGreaterThan(8)
    expect(llm.sent.every(({ headers }) => headers.authorization === `Bearer ${SECRET}`)).toBe(true)
    texts.push((await call('GET', `${ML}/memory/${memory}/messages`)).body)
    texts.push((await request('GET', `/conversations/${memory}/trace`)).body)
    for (const text of texts) {
      expect(JSON.stringify(text)).not.toMatch(/54321|very/)
    }
  })
})
