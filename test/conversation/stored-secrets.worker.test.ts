import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { readModel } from '../../src/db/registry'
import { seal } from '../../src/db/sealing'
import { maskSecret } from '../../src/lib/mask'
import { createCollection } from '../../src/registry/collections'
import { createModel, findModel, openSecrets, updateModel } from '../../src/registry/models'
import { historySchema } from '../history-schema'

const KEY = 'sk-1234567890'
let provider: ReturnType<typeof vi.spyOn>

beforeAll(() => createCollection(env, historySchema('talk')))

/** What any of the providers takes for an answer. */
const answers = async (): Promise<Response> =>
  Response.json({
    data: [{ id: 'm' }],
    choices: [{ message: { content: 'Hi.' } }],
    candidates: [],
    success: true,
    result: { response: 'Hi.' },
  })

beforeEach(() => {
  provider = vi.spyOn(globalThis, 'fetch').mockImplementation(answers)
})

afterEach(() => vi.restoreAllMocks())

const body = (parts: Record<string, unknown> = {}) => ({
  model_name: 'openai/gpt-4o-mini',
  history_collection: 'talk',
  api_key: KEY,
  max_bytes: 16_384,
  ...parts,
})

describe('stored secrets', () => {
  const GATEWAY = 'https://gateway.ai.cloudflare.com'
  const HEADERS = { 'x-proxy-key': 'proxy-secret' }
  const AWS = { access_key_id: 'AKIA1', secret_access_key: 'aws-secret-key', region: 'us-east-1' }
  const elsewhere: [string, Record<string, unknown>, Record<string, unknown>][] = [
    ['openai_url', body(), { openai_url: 'https://collector.example' }],
    [
      'another openai_url',
      body({ openai_url: 'https://a.example' }),
      { openai_url: 'https://a.example:444' },
    ],
    ['google_url', body({ model_name: 'google/gemini' }), { google_url: 'https://collector.example' }],
    ['anthropic_url', body({ model_name: 'anthropic/c' }), { anthropic_url: 'https://collector.example' }],
    [
      'url',
      body({ model_name: 'azure/gpt', url: 'https://a.openai.azure.com/chat' }),
      { url: 'https://collector.example/chat' },
    ],
    [
      'vllm_url',
      body({ model_name: 'vllm/m', vllm_url: 'https://a.example' }),
      { vllm_url: 'https://collector.example' },
    ],
    [
      'cloudflare_url',
      body({ model_name: 'cloudflare/@cf/m', account_id: 'acme' }),
      { cloudflare_url: 'https://collector.example' },
    ],
    ['bedrock_url', body({ model_name: 'bedrock/m', ...AWS }), { bedrock_url: 'https://collector.example' }],
    ['region', body({ model_name: 'bedrock/m', ...AWS }), { region: 'eu-west-1' }],
    ['provider', body(), { model_name: 'anthropic/claude' }],
    ...[`${GATEWAY}/v1/mallory/g/openai`, `${GATEWAY}/v1/acme/g/custom-mallory`, GATEWAY].map(
      (openai_url): [string, Record<string, unknown>, Record<string, unknown>] => [
        `another's part of a shared host: ${openai_url}`,
        body({ openai_url: `${GATEWAY}/v1/acme/g/openai` }),
        { openai_url },
      ],
    ),
    [
      "another's part of a shared host, its name in full",
      body({ openai_url: `${GATEWAY}./v1/acme/g/openai` }),
      { openai_url: `${GATEWAY}./v1/mallory/g/openai` },
    ],
    [
      'a resource of Azure behind a gateway',
      body({ model_name: 'azure/gpt', url: `${GATEWAY}/v1/acme/g/azure-openai/acme/gpt/chat/completions` }),
      { url: `${GATEWAY}/v1/acme/g/azure-openai/mallory/gpt/chat/completions` },
    ],
  ]

  it.each(elsewhere)('are not sent to another place: %s', async (_, made, change) => {
    const { id, ...shown } = await createModel(env, made)
    const row = await readModel(env.DB, id)
    provider.mockClear()
    const refusal = { status: 400, message: expect.stringMatching(/Send `api_key`.* again/) }
    await expect(updateModel(env, id, change)).rejects.toMatchObject(refusal)
    // Masked secrets, as GET gave them, are the stored ones.
    await expect(updateModel(env, id, { ...shown, ...change })).rejects.toMatchObject(refusal)
    await expect(
      updateModel(env, id, { ...change, rewrite_model: `${made.model_name}-2` }),
    ).rejects.toMatchObject({ status: 400 })
    expect(provider).not.toHaveBeenCalled()
    expect(await readModel(env.DB, id)).toEqual(row)
    const secrets = String(made.model_name).startsWith('bedrock')
      ? { api_key: 'new-key', secret_access_key: 'new-secret' }
      : { api_key: 'new-key' }
    await updateModel(env, id, { ...change, ...secrets })
    expect(await findModel(env, id)).toMatchObject(secrets)
  })

  it('stay where the model is called at the same host', async () => {
    const made = await createModel(env, body({ openai_url: 'https://a.example/', headers: HEADERS }))
    await updateModel(env, made.id, { openai_url: 'https://a.example/v2', model_name: 'openai/gpt-5' })
    expect(await findModel(env, made.id)).toMatchObject({ api_key: KEY, headers: HEADERS })
  })

  it('stay where the model is called by way of the same gateway', async () => {
    const google_url = `${GATEWAY}/v1/acme/g/google-ai-studio`
    const made = await createModel(env, body({ model_name: 'google/gemini-a', google_url }))
    await updateModel(env, made.id, { model_name: 'google/gemini-b', google_url: `${google_url}/` })
    expect(await findModel(env, made.id)).toMatchObject({ api_key: KEY, model_name: 'google/gemini-b' })
  })

  it('have to be sent again where null takes the model back to its provider', async () => {
    const AT = 'https://a.example'
    for (const [made, back] of [
      [body({ openai_url: AT, openai_path: '/chat' }), { openai_url: null, openai_path: null }],
      [body({ model_name: 'google/gemini', google_url: AT }), { google_url: null }],
      [body({ model_name: 'anthropic/c', anthropic_url: AT }), { anthropic_url: null }],
      [
        body({ model_name: 'cloudflare/@cf/m', account_id: 'acme', cloudflare_url: AT }),
        { cloudflare_url: null },
      ],
      [body({ model_name: 'bedrock/m', region: 'us-east-1', bedrock_url: AT }), { bedrock_url: null }],
    ] as Record<string, unknown>[][]) {
      const { id } = await createModel(env, made!)
      await expect(updateModel(env, id, back!)).rejects.toThrow(/Send `api_key` again/)
      const updated = await updateModel(env, id, { ...back, api_key: 'sk-provider' })
      for (const name of Object.keys(back!)) expect(updated).not.toHaveProperty(name)
      expect(provider.mock.lastCall?.[0]).toMatch(
        /^https:\/\/[a-z-]+\.(openai|googleapis|anthropic|cloudflare|us-east-1)/,
      )
    }
  })

  it('have to be sent one and all, or taken away', async () => {
    const { id } = await createModel(env, body({ headers: { ...HEADERS, 'x-tenant': 'acme' } }))
    const move = { openai_url: 'https://a.example', api_key: KEY }
    await expect(updateModel(env, id, move)).rejects.toThrow(/`headers.x-proxy-key`, `headers.x-tenant`/)
    const masked = { 'x-proxy-key': 'proxy*******', 'x-tenant': 'globex' }
    await expect(updateModel(env, id, { ...move, headers: masked })).rejects.toThrow(/`headers.x-proxy-key` /)
    await updateModel(env, id, { ...move, headers: { 'x-tenant': 'acme' } })
    expect(await findModel(env, id)).toMatchObject({ ...move, headers: { 'x-tenant': 'acme' } })
    await updateModel(env, id, { openai_url: 'https://b.example', api_key: 'sk-b', headers: null })
    expect(await findModel(env, id)).not.toHaveProperty('headers')
  })

  it('do not go by way of a model that needs none', async () => {
    const { id } = await createModel(env, body())
    await expect(updateModel(env, id, { model_name: 'local/extractive' })).rejects.toThrow(/null/)
    await updateModel(env, id, { model_name: 'local/extractive', api_key: null })
    expect(await findModel(env, id)).not.toHaveProperty('api_key')
  })

  it('are what they are, even where they look like what is stored', async () => {
    const stolen = await seal(KEY, env)
    const lookalike = JSON.stringify({ api_key: stolen })
    await createModel(env, body({ id: 'lookalike', api_key: stolen, session_token: lookalike }))
    expect(await findModel(env, 'lookalike')).toMatchObject({ api_key: stolen, session_token: lookalike })
    await env.DB.prepare('UPDATE conversation_models SET sealed_api_key = ?, masked_api_key = ? WHERE id = ?')
      .bind(await seal(lookalike, env), maskSecret(lookalike), 'lookalike')
      .run()
    const row = (await readModel(env.DB, 'lookalike'))!
    expect(await openSecrets(row, env)).toEqual({ api_key: lookalike })
  })
})
