/** Embedding models of Google Cloud: which token each call has, and how another one is got. */
import { createVerify, generateKeyPairSync } from 'node:crypto'
import { afterEach, expect, it, vi } from 'vitest'
import { createEmbeddingModel } from '../../src/models/embedders'
import { localEnv } from './ask'

const TOKENS = {
  access_token: 'first-token',
  refresh_token: 'refresh-me',
  client_id: 'client',
  client_secret: 'client-secret',
}
const MODEL = { model_name: 'gcp/text-embedding-005', project_id: 'shop' }
const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const PEM = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

interface Sent {
  url: string
  bearer: string | null
  body: string
}

/** Google, which takes these tokens, and gives `new-token`. */
function google(...taken: string[]): Sent[] {
  const sent: Sent[] = []
  vi.stubGlobal('fetch', async (url: string, init: RequestInit) => {
    const bearer = new Headers(init.headers).get('authorization')
    sent.push({ url, bearer, body: String(init.body) })
    if (url === 'https://oauth2.googleapis.com/token') return Response.json({ access_token: 'new-token' })
    if (!taken.some((token) => bearer === `Bearer ${token}`)) {
      return Response.json({ error: { code: 401, message: `no such token: ${bearer}` } }, { status: 401 })
    }
    const { instances } = JSON.parse(String(init.body)) as { instances: unknown[] }
    return Response.json({ predictions: instances.map((_, at) => ({ embeddings: { values: [at, 1] } })) })
  })
  return sent
}

afterEach(() => vi.unstubAllGlobals())

const model = (config: Record<string, unknown>, dimensions?: number) =>
  createEmbeddingModel({ ...MODEL, ...config }, localEnv, dimensions)

it('asks with the token that it was given, and tells queries from documents', async () => {
  const sent = google('first-token')
  const embedder = model({ ...TOKENS, region: 'europe-west4', query_task: 'QUESTION_ANSWERING' }, 256)
  expect((await embedder.embed(['a', 'b'], 'document')).map((vector) => [...vector])).toEqual([
    [0, 1],
    [1, 1],
  ])
  await embedder.embed(['c'], 'query')
  expect(sent.map(({ url }) => url)).toEqual(
    Array.from(
      { length: 2 },
      () =>
        'https://europe-west4-aiplatform.googleapis.com/v1/projects/shop/locations/europe-west4/publishers/google/models/text-embedding-005:predict',
    ),
  )
  expect(sent.map(({ body }) => JSON.parse(body))).toEqual([
    {
      instances: ['a', 'b'].map((content) => ({ content, task_type: 'RETRIEVAL_DOCUMENT' })),
      parameters: { outputDimensionality: 256 },
    },
    {
      instances: [{ content: 'c', task_type: 'QUESTION_ANSWERING' }],
      parameters: { outputDimensionality: 256 },
    },
  ])
})

it('gets another token once one is over, and keeps it', async () => {
  const sent = google('new-token')
  const embedder = model(TOKENS)
  await embedder.embed(['a'], 'query')
  await embedder.embed(['b'], 'query')
  expect(sent.map(({ bearer }) => bearer)).toEqual([
    'Bearer first-token',
    null,
    'Bearer new-token',
    'Bearer new-token',
  ])
  expect(Object.fromEntries(new URLSearchParams(sent[1]!.body))).toEqual({
    grant_type: 'refresh_token',
    client_id: 'client',
    client_secret: 'client-secret',
    refresh_token: 'refresh-me',
  })
})

it('signs for a service account', async () => {
  const sent = google('new-token')
  const embedder = model({ service_account: { client_email: 'shop@example.iam', private_key: PEM } })
  await embedder.embed(['a'], 'document')
  const given = new URLSearchParams(sent[0]!.body)
  expect(given.get('grant_type')).toBe('urn:ietf:params:oauth:grant-type:jwt-bearer')
  const [head, claims, signature] = given.get('assertion')!.split('.')
  const verified = createVerify('RSA-SHA256').update(`${head}.${claims}`)
  expect(verified.verify(publicKey, Buffer.from(signature!, 'base64url'))).toBe(true)
  expect(JSON.parse(Buffer.from(claims!, 'base64url').toString())).toMatchObject({
    iss: 'shop@example.iam',
    aud: 'https://oauth2.googleapis.com/token',
    scope: 'https://www.googleapis.com/auth/cloud-platform',
  })
})

it('says what is missing, and never a secret', async () => {
  google()
  await expect(model(TOKENS).embed(['a'], 'query')).rejects.toMatchObject({
    message: expect.not.stringMatching(/new-token|first-token|client-secret/),
  })
  const key = { service_account: { client_email: 'shop@example.iam', private_key: 'none' } }
  await expect(model(key).embed(['a'], 'query')).rejects.toThrow('is not a key of PKCS #8')
  expect(() => model({})).toThrow('Property `embed.model_config.client_id` is missing or is not a string.')
  expect(() => model({ ...TOKENS, project_id: undefined })).toThrow('`embed.model_config.project_id`')
  expect(() => model({ ...TOKENS, region: 'evil.example/' })).toThrow('not the name of a region')
})
