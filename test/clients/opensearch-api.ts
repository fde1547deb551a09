/** OpenSearch's client at the Parley under test, and the set-up that its walk-through makes. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of connectors look like this
import { request as httpRequest } from 'node:http'
import { Client } from '@opensearch-project/opensearch'
import { KEY, request, unique, url } from './harness'
import type { ScriptedLlm } from './scripted-llm'

export const connect = (options: Record<string, unknown> = {}): Client =>
  new Client({ node: url, auth: { username: 'admin', password: KEY }, maxRetries: 0, ...options })

export interface Raw {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: what came back is what the tests look into
  body: any
}

/** A request past the typed methods. An error's answer comes back as any other does. */
export async function call(
  method: string,
  path: string,
  body?: unknown,
  key: string | null = KEY,
): Promise<Raw> {
  const response = await fetch(url + path, {
    method,
    headers: {
      ...(key !== null && { authorization: `Basic ${btoa(`somebody:${key}`)}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
}

/** A GET with a body, as curl sends it and fetch does not. */
export const getWith = (path: string, body: unknown): Promise<Raw> =>
  new Promise((resolve, reject) => {
    const text = JSON.stringify(body)
    const headers = {
      authorization: `Bearer ${KEY}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
    }
    const sent = httpRequest(url + path, { method: 'GET', headers }, async (response) => {
      let answer = ''
      for await (const part of response) answer += part
      resolve({ status: response.statusCode!, body: JSON.parse(answer) })
    })
    sent.once('error', reject)
    sent.end(text)
  })

/** The connector of OpenSearch's documentation, for a provider of the test's own. */
export const connectorOf = (llm: Pick<ScriptedLlm, 'host'>, changes: Record<string, unknown> = {}) => ({
  name: 'Chat',
  description: 'Chat completions',
  version: 2,
  protocol: 'http',
  parameters: { endpoint: llm.host, model: 'gpt-3.5-turbo', temperature: 0 },
  credential: { openAI_key: 'sk-very-secret' },
  actions: [
    {
      action_type: 'predict',
      method: 'POST',
      url: 'http://${parameters.endpoint}/v1/chat/completions',
      headers: { Authorization: 'Bearer ${credential.openAI_key}' },
      request_body:
        '{ "model": "${parameters.model}", "messages": ${parameters.messages}, "temperature": ${parameters.temperature} }',
    },
  ],
  ...changes,
})

/** Registers and deploys a remote model. @returns its id */
export async function remoteModel(
  llm: Pick<ScriptedLlm, 'host'>,
  changes: Record<string, unknown> = {},
): Promise<string> {
  const made = await call('POST', '/_plugins/_ml/connectors/_create', connectorOf(llm, changes))
  const registered = await call('POST', '/_plugins/_ml/models/_register?deploy=true', {
    name: 'chat',
    function_name: 'remote',
    connector_id: made.body.connector_id,
  })
  if (registered.status !== 200) throw new Error(JSON.stringify([made.body, registered.body]))
  return registered.body.model_id
}

/** Stores a pipeline that answers. @returns its name */
export async function ragPipeline(model: string, changes: Record<string, unknown> = {}): Promise<string> {
  const id = unique('rag')
  const processor = { model_id: model, context_field_list: ['text'], ...changes }
  const { status, body } = await call('PUT', `/_search/pipeline/${id}`, {
    response_processors: [{ retrieval_augmented_generation: processor }],
  })
  if (status !== 200) throw new Error(JSON.stringify(body))
  return id
}

export const PRESIDENTS = [
  { text: 'Abraham Lincoln was the sixteenth president of the United States.', title: 'Lincoln' },
  { text: 'The president lives in the White House in Washington.', title: 'White House' },
  { text: 'A president is elected for four years.', title: 'Term' },
]

/** An index of sentences about presidents. @returns its name */
export async function presidents(): Promise<string> {
  const index = unique('qa')
  const lines = PRESIDENTS.flatMap((document, at) => [{ index: { _id: String(at + 1) } }, document])
  const { body } = await connect().bulk({ index, body: lines })
  if (body.errors) throw new Error(JSON.stringify(body.items))
  return index
}

/** A key of a user of its own, so that lists are its alone. */
export async function userKey(): Promise<string> {
  const { body } = await request('POST', '/keys', {
    description: unique('user'),
    actions: ['conversations:*'],
    collections: ['nothing'],
  })
  return body.value
}
