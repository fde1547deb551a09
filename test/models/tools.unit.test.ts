/** Tools on each provider's wire: how they are offered, how calls are read, and how results go back. */
import { beforeEach, describe, expect, it } from 'vitest'
import type { ToolCallPart } from '../../src/lib/parts'
import type { ChatMessage, ToolSpec } from '../../src/models/language-model'
import { ask } from './ask'
import { rawServer, sendJson, sendSplit, sse } from './raw-server'

const raw = rawServer()
const TOOL: ToolSpec = {
  name: 'orders',
  description: 'Looks up an order.',
  parameters: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
}
const CALL: ToolCallPart = { type: 'tool_call', id: 'c1', name: 'orders', arguments: '{"id":"7"}' }
const DONE: ChatMessage[] = [
  { role: 'user', content: 'Where is order 7?' },
  { role: 'assistant', content: 'Let me see.', calls: [CALL] },
  { role: 'user', content: '', results: [{ type: 'tool_result', id: 'c1', text: 'gone', failed: true }] },
]

interface Wire {
  name: string
  model: () => Record<string, unknown>
  /** a stream of text and a call, and the same in one piece */
  streamed?: unknown[]
  whole: unknown
  offered: object
  told: object
  silenced: object
}

const chatTool = { type: 'function', function: TOOL }
const chatCalls = [{ id: 'c1', type: 'function', function: { name: 'orders', arguments: '{"id":"7"}' } }]
const chat: Omit<Wire, 'name' | 'model'> = {
  streamed: [
    { choices: [{ delta: { content: 'Let me ' } }] },
    { choices: [{ delta: { content: 'see.' } }] },
    {
      choices: [
        { delta: { tool_calls: [{ index: 0, id: 'c1', function: { name: 'orders', arguments: '' } }] } },
      ],
    },
    { choices: [{ delta: { tool_calls: [{ index: 0, function: { arguments: '{"id":' } }] } }] },
    { choices: [{ delta: { tool_calls: [{ index: 0, function: { arguments: '"7"}' } }] } }] },
    { choices: [{ delta: {}, finish_reason: 'tool_calls' }] },
    '[DONE]',
  ],
  whole: {
    choices: [{ message: { content: 'Let me see.', tool_calls: chatCalls }, finish_reason: 'tool_calls' }],
  },
  offered: { tools: [chatTool] },
  told: {
    messages: [
      { role: 'user', content: 'Where is order 7?' },
      { role: 'assistant', content: 'Let me see.', tool_calls: chatCalls },
      { role: 'tool', tool_call_id: 'c1', content: 'gone' },
    ],
  },
  silenced: { tools: [chatTool], tool_choice: 'none' },
}

const WIRES: Wire[] = [
  { name: 'OpenAI', model: () => ({ model_name: 'openai/x', api_key: 'k', openai_url: raw.url }), ...chat },
  { name: 'vLLM', model: () => ({ model_name: 'vllm/x', vllm_url: raw.url }), ...chat },
  {
    name: 'Workers AI',
    model: () => ({ model_name: 'cloudflare/@cf/x', api_key: 'k', account_id: 'a', cloudflare_url: raw.url }),
    ...chat,
    // Its own models write whole calls without ids, and arguments that are objects.
    streamed: [
      { response: 'Let me see.' },
      { response: '', tool_calls: [{ name: 'orders', arguments: { id: '7' } }] },
      '[DONE]',
    ],
    whole: undefined,
  },
  {
    name: 'Anthropic',
    model: () => ({ model_name: 'anthropic/x', api_key: 'k', anthropic_url: raw.url }),
    streamed: [
      { type: 'message_start', message: { usage: { input_tokens: 3 } } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Let me see.' } },
      {
        type: 'content_block_start',
        index: 1,
        content_block: { type: 'tool_use', id: 'c1', name: 'orders', input: {} },
      },
      { type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: '{"id":' } },
      { type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: '"7"}' } },
      { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 2 } },
      { type: 'message_stop' },
    ],
    whole: {
      content: [
        { type: 'text', text: 'Let me see.' },
        { type: 'tool_use', id: 'c1', name: 'orders', input: { id: '7' } },
      ],
      stop_reason: 'tool_use',
      usage: { input_tokens: 3, output_tokens: 2 },
    },
    offered: { tools: [{ name: 'orders', description: TOOL.description, input_schema: TOOL.parameters }] },
    told: {
      messages: [
        { role: 'user', content: 'Where is order 7?' },
        {
          role: 'assistant',
          content: [
            { type: 'text', text: 'Let me see.' },
            { type: 'tool_use', id: 'c1', name: 'orders', input: { id: '7' } },
          ],
        },
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'gone', is_error: true }],
        },
      ],
    },
    silenced: { tool_choice: { type: 'none' } },
  },
  {
    name: 'Gemini',
    model: () => ({ model_name: 'google/x', api_key: 'k', google_url: raw.url }),
    streamed: [
      { candidates: [{ content: { parts: [{ text: 'Let me see.' }] } }] },
      {
        candidates: [
          {
            content: {
              parts: [{ functionCall: { name: 'orders', args: { id: '7' } }, thoughtSignature: 'S1==' }],
            },
            finishReason: 'STOP',
          },
        ],
      },
    ],
    whole: {
      candidates: [
        {
          content: {
            parts: [{ text: 'Let me see.' }, { functionCall: { name: 'orders', args: { id: '7' } } }],
          },
          finishReason: 'STOP',
        },
      ],
    },
    offered: {
      tools: [
        {
          functionDeclarations: [
            { name: 'orders', description: TOOL.description, parametersJsonSchema: TOOL.parameters },
          ],
        },
      ],
    },
    told: {},
    silenced: { toolConfig: { functionCallingConfig: { mode: 'NONE' } } },
  },
  {
    name: 'Bedrock',
    model: () => ({ model_name: 'bedrock/x', api_key: 'k', region: 'eu-west-1', bedrock_url: raw.url }),
    whole: {
      output: {
        message: {
          content: [
            { text: 'Let me see.' },
            { toolUse: { toolUseId: 'c1', name: 'orders', input: { id: '7' } } },
          ],
        },
      },
      stopReason: 'tool_use',
      usage: { inputTokens: 3, outputTokens: 2 },
    },
    offered: {
      toolConfig: {
        tools: [
          {
            toolSpec: {
              name: 'orders',
              description: TOOL.description,
              inputSchema: { json: TOOL.parameters },
            },
          },
        ],
      },
    },
    told: {
      messages: [
        { role: 'user', content: [{ text: 'Where is order 7?' }] },
        {
          role: 'assistant',
          content: [
            { text: 'Let me see.' },
            { toolUse: { toolUseId: 'c1', name: 'orders', input: { id: '7' } } },
          ],
        },
        {
          role: 'user',
          content: [{ toolResult: { toolUseId: 'c1', content: [{ text: 'gone' }], status: 'error' } }],
        },
      ],
    },
    silenced: {},
  },
]

const said = [
  { type: 'call', call: { ...CALL, id: expect.any(String) } },
  { type: 'finish', reason: 'stop' },
]

describe.each(WIRES)('tools of $name', ({ model, streamed, whole, offered, told, silenced }) => {
  beforeEach(() => {
    raw.respond = (response) => sendJson(response, 200, whole ?? {})
  })

  it('are offered, and calls in a whole reply are read', async () => {
    const asking = ask(model(), { tools: [TOOL], stream: false })
    if (whole === undefined) await asking.catch(() => {})
    else {
      const deltas = await asking
      expect(deltas.filter(({ type }) => type !== 'usage')).toEqual([
        { type: 'text', text: 'Let me see.' },
        ...said,
      ])
    }
    expect(raw.received.at(-1)?.body).toMatchObject(offered)
  })

  it.runIf(streamed)('are called in a stream, however it is split', async () => {
    for (const size of [7, 100_000]) {
      raw.respond = (response) => sendSplit(response, sse(...streamed!), size)
      const deltas = await ask(model(), { tools: [TOOL] })
      expect(deltas.flatMap((delta) => (delta.type === 'text' ? delta.text : [])).join('')).toBe(
        'Let me see.',
      )
      expect(deltas.slice(-2)).toEqual(said)
    }
  })

  it('get their results back, and are offered no more where the model must answer', async () => {
    await ask(model(), { messages: DONE, tools: [TOOL], mustAnswer: true, stream: false }).catch(() => {})
    expect(raw.received.at(-1)?.body).toMatchObject({ ...told, ...silenced })
  })
})

it('hands Gemini the signature of a call back with it, and the result by its name', async () => {
  const google = { model_name: 'google/x', api_key: 'k', google_url: raw.url }
  raw.respond = (response) =>
    sendSplit(response, sse(...WIRES.find(({ name }) => name === 'Gemini')!.streamed!), 1_000)
  const deltas = await ask(google, { tools: [TOOL] })
  const [call] = deltas.flatMap((delta) => (delta.type === 'call' ? [delta.call] : []))
  const results = [{ type: 'tool_result' as const, id: call!.id, text: 'sent' }]
  const messages: ChatMessage[] = [
    { role: 'user', content: 'Where?' },
    { role: 'assistant', content: '', calls: [call!] },
    { role: 'user', content: '', results },
  ]
  await ask(google, { messages, tools: [TOOL] }).catch(() => {})
  expect(raw.received.at(-1)?.body).toMatchObject({
    contents: [
      { role: 'user', parts: [{ text: 'Where?' }] },
      {
        role: 'model',
        parts: [{ functionCall: { name: 'orders', args: { id: '7' } }, thoughtSignature: 'S1==' }],
      },
      { role: 'user', parts: [{ functionResponse: { name: 'orders', response: { result: 'sent' } } }] },
    ],
  })
})

it('tells calls apart whose server gave them one id, and stops a server that calls without end', async () => {
  const openai = { model_name: 'openai/x', api_key: 'k', openai_url: raw.url }
  const call = (index: number) => ({ index, id: 'same', function: { name: 'orders', arguments: '{}' } })
  const reply = (count: number) => ({
    choices: [{ message: { tool_calls: Array.from({ length: count }, (_, at) => call(at)) } }],
  })
  raw.respond = (response) => sendJson(response, 200, reply(3))
  const deltas = await ask(openai, { tools: [TOOL], stream: false })
  const ids = deltas.flatMap((delta) => (delta.type === 'call' ? [delta.call.id] : []))
  expect(new Set(ids).size).toBe(3)
  raw.respond = (response) => sendJson(response, 200, reply(17))
  await expect(ask(openai, { tools: [TOOL], stream: false })).rejects.toThrow('too many tools')
})
