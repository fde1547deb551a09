import { AwsV4Signer } from 'aws4fetch'
import { describe, expect, it } from 'vitest'
import { type Gateway, throughGateway } from '../../src/models/egress'
import { createEmbeddingModel } from '../../src/models/embedders'
import { ask, localEnv, textOf } from './ask'
import { rawServer, sendJson, sendSplit, sse } from './raw-server'

const recorder = rawServer()
const env = () => ({ ...localEnv, AI_GATEWAY: 'acc/gw', AI_GATEWAY_URL: `${recorder.url}/v1` })

const GATEWAY = 'https://gateway.ai.cloudflare.com/v1/acc/gw'
const routed = (url: string, gateway: Gateway = { AI_GATEWAY: 'acc/gw' }) => throughGateway(url, gateway).url

describe('a call to a provider of its own address', () => {
  it.each([
    ['https://api.openai.com/v1/chat/completions', 'openai/chat/completions'],
    ['https://api.openai.com/v1/embeddings', 'openai/embeddings'],
    [
      'https://acme.openai.azure.com/openai/deployments/gpt/chat/completions?api-version=1',
      'azure-openai/acme/gpt/chat/completions?api-version=1',
    ],
    [
      'https://generativelanguage.googleapis.com/v1beta/models/g:streamGenerateContent?alt=sse',
      'google-ai-studio/v1beta/models/g:streamGenerateContent?alt=sse',
    ],
    ['https://api.anthropic.com/v1/messages', 'anthropic/v1/messages'],
    [
      'https://bedrock-runtime.eu-west-1.amazonaws.com/model/a.b%3A0/converse-stream',
      'aws-bedrock/bedrock-runtime/eu-west-1/model/a.b%3A0/converse-stream',
    ],
    ['https://api.cloudflare.com/client/v4/accounts/acc/ai/run/@cf/meta/llama', 'workers-ai/@cf/meta/llama'],
  ])('%s goes to %s', (url, path) => {
    expect(routed(url)).toBe(`${GATEWAY}/${path}`)
    expect(routed(url, {})).toBe(url)
    expect(routed(url, { AI_GATEWAY: '' })).toBe(url)
  })

  it.each([
    // Workers AI of another account would be asked of the gateway's.
    'https://api.cloudflare.com/client/v4/accounts/other/ai/run/@cf/meta/llama',
    'https://acme.openai.azure.com/openai/v1/chat/completions',
  ])('%s stays what it is', (url) => {
    expect(routed(url)).toBe(url)
  })

  it.each(['../../other/gateway', '%2e%2e/%2e%2e/other/gateway', '..\\..\\other'])(
    'does not leave its part of the gateway by a path with %s',
    (path) => {
      expect(routed(`https://api.openai.com/v1/${path}`)).toMatch(
        /^https:\/\/gateway\.ai\.cloudflare\.com\/v1\/acc\/gw\/openai\//,
      )
    },
  )
})

describe('a setting', () => {
  it.each(['acc', 'acc/', 'acc/gw/more', 'https://gateway.ai.cloudflare.com/v1/a/b', 'a/../b'])(
    '%s is refused with what it should be',
    (AI_GATEWAY) => {
      expect(() => routed('https://api.openai.com/v1/x', { AI_GATEWAY })).toThrow(
        'The variable AI_GATEWAY of the deployment is not `<account id>/<gateway name>`.',
      )
    },
  )

  it('does not open hosts that may not be called', () => {
    const elsewhere = { AI_GATEWAY: 'acc/gw', AI_GATEWAY_URL: 'http://10.0.0.1/v1' }
    expect(() => routed('https://api.openai.com/v1/x', elsewhere)).toThrow('add `10.0.0.1` to')
    expect(() => routed('https://10.0.0.1/v1/x')).toThrow('add `10.0.0.1` to')
  })
})

const chunk = { choices: [{ delta: { content: 'routed' }, finish_reason: 'stop' }] }
const gemini = {
  candidates: [{ content: { parts: [{ text: 'routed' }] }, finishReason: 'STOP' }],
}

describe('models behind a gateway', () => {
  it.each([
    [
      { model_name: 'openai/gpt', api_key: 'key1' },
      'openai/chat/completions',
      { authorization: 'Bearer key1' },
    ],
    [
      {
        model_name: 'azure/gpt',
        api_key: 'key2',
        url: 'https://acme.openai.azure.com/openai/deployments/d/chat/completions?api-version=1',
      },
      'azure-openai/acme/d/chat/completions?api-version=1',
      { 'api-key': 'key2' },
    ],
    [
      { model_name: 'google/gemini', api_key: 'key3' },
      'google-ai-studio/v1beta/models/gemini:streamGenerateContent?alt=sse',
      { 'x-goog-api-key': 'key3' },
    ],
    [
      { model_name: 'cloudflare/@cf/m', api_key: 'key4', account_id: 'acc' },
      'workers-ai/@cf/m',
      { authorization: 'Bearer key4' },
    ],
  ])('%j are asked there, each with its own key', async (model, path, headers) => {
    const events = model.model_name.startsWith('google') ? sse(gemini) : sse(chunk, '[DONE]')
    recorder.respond = (response) => sendSplit(response, events, 1000)
    const authenticated = { ...env(), AI_GATEWAY_TOKEN: 'gateway-token' }
    expect(textOf(await ask(model, {}, undefined, authenticated))).toBe('routed')
    expect(recorder.received).toMatchObject([
      { path: `/v1/acc/gw/${path}`, headers: { ...headers, 'cf-aig-authorization': 'Bearer gateway-token' } },
    ])
  })

  it('of Anthropic are asked there', async () => {
    recorder.respond = (response) =>
      sendJson(response, 200, { content: [{ type: 'text', text: 'routed' }], stop_reason: 'end_turn' })
    const deltas = await ask(
      { model_name: 'anthropic/claude', api_key: 'key5' },
      { stream: false },
      undefined,
      env(),
    )
    expect(textOf(deltas)).toBe('routed')
    expect(recorder.received[0]).toMatchObject({
      path: '/v1/acc/gw/anthropic/v1/messages',
      headers: { 'x-api-key': 'key5' },
    })
  })

  it('of Bedrock are signed for its own host, and asked there', async () => {
    recorder.respond = (response) =>
      sendJson(response, 200, {
        output: { message: { content: [{ text: 'routed' }] } },
        stopReason: 'end_turn',
        usage: { inputTokens: 1, outputTokens: 1 },
      })
    const model = {
      model_name: 'bedrock/amazon.nova-lite-v1:0',
      region: 'eu-west-1',
      access_key_id: 'AKIA',
      secret_access_key: 'secret-access-key',
    }
    const deltas = await ask(model, { stream: false }, undefined, env())
    expect(textOf(deltas)).toBe('routed')
    const [received] = recorder.received
    expect(decodeURIComponent(received?.path ?? '')).toBe(
      '/v1/acc/gw/aws-bedrock/bedrock-runtime/eu-west-1/model/amazon.nova-lite-v1:0/converse',
    )
    // The signature is made again for the address that Bedrock will see.
    const signer = new AwsV4Signer({
      url: `https://bedrock-runtime.eu-west-1.amazonaws.com${received?.path.replace(/^.*eu-west-1/, '')}`,
      method: 'POST',
      headers: { 'content-type': String(received?.headers['content-type']) },
      body: JSON.stringify(received?.body),
      accessKeyId: 'AKIA',
      secretAccessKey: 'secret-access-key',
      service: 'bedrock',
      region: 'eu-west-1',
      datetime: String(received?.headers['x-amz-date']),
    })
    expect(received?.headers.authorization).toBe(await signer.authHeader())
  })

  it('that name a server of their own are asked at that server, without the token', async () => {
    recorder.respond = (response) => sendSplit(response, sse(chunk, '[DONE]'), 1000)
    const model = { model_name: 'openai/gpt', api_key: 'k', openai_url: recorder.url }
    await ask(model, {}, undefined, { ...env(), AI_GATEWAY_TOKEN: 'gateway-token' })
    expect(recorder.received[0]?.path).toBe('/v1/chat/completions')
    expect(recorder.received[0]?.headers).not.toHaveProperty('cf-aig-authorization')
  })

  it('do not tell the token, whatever the gateway says', async () => {
    recorder.respond = (response) => sendJson(response, 401, { error: { message: 'No gateway-token here' } })
    const asked = ask({ model_name: 'openai/gpt', api_key: 'key1' }, {}, undefined, {
      ...env(),
      AI_GATEWAY_TOKEN: 'gateway-token',
    })
    await expect(asked).rejects.toThrow('OpenAI API error: No gatew******** here')
  })

  it('of the binding name the gateway in their options', async () => {
    const options: unknown[] = []
    const AI = {
      run: async (_model: string, inputs: Record<string, unknown>, given: unknown) => {
        options.push(given)
        return inputs.stream ? new Response(sse({ response: 'bound' }, '[DONE]')).body : { data: [[1, 2]] }
      },
    }
    const workersAi = { AI_BACKEND: 'workers-ai', AI, AI_GATEWAY: 'acc/gw' } as unknown as Cloudflare.Env
    await ask({ model_name: 'cloudflare/@cf/m' }, {}, undefined, workersAi)
    await createEmbeddingModel({ model_name: 'cloudflare/@cf/e' }, workersAi).embed(['text'], 'query')
    expect(options).toMatchObject([{ gateway: { id: 'gw' } }, { gateway: { id: 'gw' } }])
  })

  it.each([
    [{ model_name: 'openai/e', api_key: 'k' }, 'openai/embeddings'],
    [
      {
        model_name: 'azure/e',
        api_key: 'k',
        url: 'https://acme.openai.azure.com/openai/deployments/e/embeddings?api-version=1',
      },
      'azure-openai/acme/e/embeddings?api-version=1',
    ],
    [{ model_name: 'google/e', api_key: 'k' }, 'google-ai-studio/v1beta/models/e:batchEmbedContents'],
  ])('%j make vectors there', async (model, path) => {
    recorder.respond = (response) =>
      sendJson(response, 200, { data: [{ embedding: [1, 2] }], embeddings: [{ values: [1, 2] }] })
    const [vector] = await createEmbeddingModel(model, env()).embed(['text'], 'query')
    expect(vector).toEqual(new Float32Array([1, 2]))
    expect(recorder.received[0]?.path).toBe(`/v1/acc/gw/${path}`)
  })
})
