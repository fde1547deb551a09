/**
 * The page "Conversational Search (RAG)" of Typesense's documentation, command after command, as a reader of it
 * would run them; only the provider is our own.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { KEY, SHOWS, url } from './harness'
import { type Llm, startLlm } from './llm'

let llm: Llm
beforeAll(async () => {
  llm = await startLlm()
})
afterAll(() => llm.stop())

/** A curl command of the page: its path, its -X and its -d. */
async function curl(path: string, method: string, data?: string): Promise<Response> {
  const headers = { 'Content-Type': 'application/json', 'X-TYPESENSE-API-KEY': KEY }
  return fetch(url + path, { method, headers, ...(data === undefined ? {} : { body: data }) })
}

const PROMPT =
  'You are an assistant for question-answering. You can only make conversations based on the provided context. If a response cannot be formed strictly using the provided context, politely say you do not have knowledge about that topic.'

const SEARCHES = `{
              "searches": [
                {
                  "collection": "tv_shows",
                  "query_by": "embedding",
                  "exclude_fields": "embedding"
                }
              ]
            }`

let conversationId = ''

test('create a conversation history collection', async () => {
  const response = await curl(
    '/collections',
    'POST',
    `{
        "name": "conversation_store",
        "fields": [
            { "name": "conversation_id", "type": "string" },
            { "name": "model_id", "type": "string" },
            { "name": "timestamp", "type": "int32" },
            { "name": "role", "type": "string", "index": false },
            { "name": "message", "type": "string", "index": false }
        ]
    }`,
  )
  expect(response.status).toBe(201)
  expect(await response.json()).toMatchObject({ name: 'conversation_store', num_documents: 0 })
})

test('create a conversation model', async () => {
  const response = await curl(
    '/conversations/models',
    'POST',
    JSON.stringify({
      id: 'conv-model-1',
      model_name: 'openai/gpt-3.5-turbo',
      history_collection: 'conversation_store',
      api_key: 'OPENAI_API_KEY',
      openai_url: llm.url,
      system_prompt: PROMPT,
      max_bytes: 16384,
    }),
  )
  expect(response.status).toBe(201)
  expect(await response.json()).toMatchObject({
    id: 'conv-model-1',
    model_name: 'openai/gpt-3.5-turbo',
    history_collection: 'conversation_store',
    api_key: 'OPENA*********',
    max_bytes: 16384,
    system_prompt: PROMPT,
  })
})

test('index data with an auto-embedding field', async () => {
  const created = await curl(
    '/collections',
    'POST',
    `{
      "name": "tv_shows",
      "fields": [
        { "name": "title", "type": "string" },
        { "name": "overview", "type": "string" },
        {
          "name": "embedding",
          "type": "float[]",
          "embed": {
            "from": ["title", "overview"],
            "model_config": { "model_name": "ts/all-MiniLM-L12-v2" }
          }
        }
      ]
    }`,
  )
  expect(created.status).toBe(201)
  expect((await created.json()) as object).toMatchObject({
    fields: expect.arrayContaining([expect.objectContaining({ name: 'embedding', num_dim: 384 })]),
  })
  const lines = SHOWS.map((show) => JSON.stringify(show)).join('\n')
  const imported = await curl('/collections/tv_shows/documents/import?action=create', 'POST', lines)
  expect((await imported.text()).split('\n')).toEqual(SHOWS.map(() => '{"success":true}'))
})

test('start a conversation', async () => {
  const path =
    '/multi_search?q=can+you+suggest+an+action+series&conversation=true&conversation_model_id=conv-model-1'
  const body = (await (await curl(path, 'POST', SEARCHES)).json()) as Record<string, never>
  expect(body).toMatchObject({
    conversation: {
      answer: 'You asked: can you suggest an action series',
      conversation_history: {
        conversation: [
          { user: 'can you suggest an action series' },
          { assistant: 'You asked: can you suggest an action series' },
        ],
        last_updated: expect.any(Number),
      },
      conversation_id: expect.any(String),
      query: 'can you suggest an action series',
    },
    results: [
      {
        facet_counts: [],
        found: 5,
        out_of: 5,
        page: 1,
        request_params: { collection_name: 'tv_shows', per_page: 10, q: 'can you suggest an action series' },
        search_cutoff: false,
        search_time_ms: expect.any(Number),
      },
    ],
  })
  conversationId = (body as unknown as { conversation: { conversation_id: string } }).conversation
    .conversation_id
})

test('stream an answer', async () => {
  const path =
    '/multi_search?q=can+you+suggest+an+action+series&conversation=true&conversation_model_id=conv-model-1&conversation_stream=true'
  const response = await curl(path, 'POST', SEARCHES)
  expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/)
  const lines = (await response.text()).split('\n').filter((line) => line !== '')
  expect(lines.at(-2)).toBe('data: [DONE]')
  expect(JSON.parse(lines.at(-1)?.slice('data: '.length) ?? '')).toMatchObject({
    results: [{ found: 5 }],
    conversation: { answer: 'You asked: can you suggest an action series' },
  })
})

test('ask a follow-up question', async () => {
  const path = `/multi_search?q=how+about+another+one&conversation=true&conversation_model_id=conv-model-1&conversation_id=${conversationId}`
  expect(await (await curl(path, 'POST', SEARCHES)).json()).toMatchObject({
    conversation: {
      conversation_id: conversationId,
      query: 'how about another one',
      conversation_history: {
        conversation: [
          { user: 'can you suggest an action series' },
          { assistant: expect.any(String) },
          { user: 'how about another one' },
          { assistant: 'You asked: standalone: how about another one' },
        ],
      },
    },
    results: [{ request_params: { q: 'how about another one' } }],
  })
})

test('manage past conversations', async () => {
  const filter = `filter_by=${encodeURIComponent(`conversation_id:=${conversationId}`)}`
  const listed = await curl(`/collections/conversation_store/documents/search?q=*&${filter}`, 'GET')
  expect(await listed.json()).toMatchObject({ found: 4 })
  const deleted = await curl(`/collections/conversation_store/documents?${filter}`, 'DELETE')
  expect(await deleted.json()).toEqual({ num_deleted: 4 })
  const again = await curl(
    `/multi_search?q=more&conversation=true&conversation_model_id=conv-model-1&conversation_id=${conversationId}`,
    'POST',
    SEARCHES,
  )
  expect([again.status, await again.json()]).toEqual([400, { message: '`conversation_id` is invalid.' }])
})

test('retrieve all models, and one', async () => {
  const all = (await (await curl('/conversations/models', 'GET')).json()) as { id: string }[]
  expect(all.map(({ id }) => id)).toContain('conv-model-1')
  const one = await curl('/conversations/models/conv-model-1', 'GET')
  expect(await one.json()).toMatchObject({ id: 'conv-model-1', api_key: 'OPENA*********' })
})

test('update a model', async () => {
  const response = await curl(
    '/conversations/models/conv-model-1',
    'PUT',
    JSON.stringify({
      id: 'conv-model-1',
      model_name: 'openai/gpt-3.5-turbo',
      history_collection: 'conversation_store',
      api_key: 'OPENAI_API_KEY',
      system_prompt: 'Hey, you are an **intelligent** assistant.',
      max_bytes: 16384,
    }),
  )
  expect(response.status).toBe(200)
  expect(await response.json()).toMatchObject({ system_prompt: 'Hey, you are an **intelligent** assistant.' })
})

test('delete a model', async () => {
  const response = await curl('/conversations/models/conv-model-1', 'DELETE')
  expect([response.status, await response.json()]).toEqual([
    200,
    expect.objectContaining({ id: 'conv-model-1' }),
  ])
  expect((await curl('/conversations/models/conv-model-1', 'GET')).status).toBe(404)
})
