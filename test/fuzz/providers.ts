/** Providers by their wires, as tests make them say anything: events, noise, thoughts, errors, and events of odd shapes. */
import { EventStreamCodec } from '@smithy/core/event-streams'
import { WIRES } from '../../bench/wires.mjs'

const encoder = new TextEncoder()
const codec = new EventStreamCodec(
  (bytes) => new TextDecoder().decode(bytes as Uint8Array),
  (text) => encoder.encode(text),
)

export type Piece = string | Uint8Array

export interface Provider {
  wire: (typeof WIRES)[string]
  model: Record<string, unknown>
  /** runs on the binding of Workers AI */
  binding?: true
  /** what its errors begin with */
  label: string
  /** an event of the wire with any content, which need be no JSON */
  event: (json: string, kind: string) => Piece
  /** pieces that say nothing */
  noise: Piece[]
  /** a piece of its thoughts, where the wire has them apart */
  reasoning?: (text: string) => Piece
  /** its own error in the midst of a stream */
  error: (message: string) => Piece
  /** bodies of events with a place for anything, and the kind of event where the wire has kinds */
  slots: [kind: string, body: (json: string) => string][]
}

const data = (json: string): string => `data: ${json}\n\n`

const frame = (json: string, kind: string, type = 'event'): Uint8Array =>
  codec.encode({
    headers: {
      [type === 'event' ? ':event-type' : ':exception-type']: { type: 'string', value: kind },
      ':message-type': { type: 'string', value: type },
    },
    body: encoder.encode(json),
  })

const SSE_NOISE = [
  ': still here\n\n',
  '\n',
  '\r\n',
  ':\n',
  'event: odd\n\n',
  'id: 7\nretry: 10\n\n',
  'odd: § x\n\n',
]

const OPENAI: Omit<Provider, 'model' | 'label'> = {
  wire: WIRES.openai!,
  event: data,
  noise: [
    ...SSE_NOISE,
    WIRES.openai!.chunk(''),
    data('{"choices":[]}'),
    data('{"choices":null,"usage":null}'),
    data('{"object":"odd","note":"§"}'),
    data('{"choices":[{"delta":{"content":null,"tool_calls":[{"function":{"arguments":"§"}}]}}]}'),
  ],
  reasoning: (text) => data(JSON.stringify({ choices: [{ delta: { reasoning_content: text } }] })),
  error: (message) => data(JSON.stringify({ error: { message, type: 'server_error' } })),
  slots: [
    ['', (json) => json],
    ['', (json) => `{"choices":${json}}`],
    ['', (json) => `{"choices":[${json}]}`],
    ['', (json) => `{"choices":[{"delta":${json}}]}`],
    ['', (json) => `{"choices":[{"delta":{"content":${json},"refusal":${json}}}]}`],
    ['', (json) => `{"choices":[{"delta":{"content":[${json}],"reasoning":${json}}}]}`],
    ['', (json) => `{"choices":[{"delta":{},"finish_reason":${json}}]}`],
    ['', (json) => `{"usage":${json}}`],
    ['', (json) => `{"usage":{"prompt_tokens":${json},"completion_tokens":${json}}}`],
    ['', (json) => `{"error":${json}}`],
    ['', (json) => `{"error":{"message":${json},"code":${json},"type":${json}}}`],
    ['', (json) => `{"response":${json}}`],
  ],
}

const CLOUDFLARE: Omit<Provider, 'model'> = {
  ...OPENAI,
  wire: WIRES['workers-ai']!,
  noise: [...OPENAI.noise, WIRES['workers-ai']!.chunk('')],
  label: 'Cloudflare',
}

export const PROVIDERS: Record<string, Provider> = {
  openai: {
    ...OPENAI,
    label: 'OpenAI',
    model: { model_name: 'openai/m', api_key: 'k', openai_url: 'https://models.example' },
  },
  vllm: { ...OPENAI, label: 'vLLM', model: { model_name: 'vllm/m', vllm_url: 'https://models.example' } },
  anthropic: {
    wire: WIRES.anthropic!,
    label: 'Anthropic',
    model: { model_name: 'anthropic/m', api_key: 'k', anthropic_url: 'https://models.example' },
    event: data,
    noise: [
      ...SSE_NOISE,
      WIRES.anthropic!.chunk(''),
      data('{"type":"ping"}'),
      data('{"type":"odd","delta":{"text":"§"}}'),
      data('{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","name":"§"}}'),
      data('{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"§"}}'),
    ],
    reasoning: (thinking) =>
      data(JSON.stringify({ type: 'content_block_delta', delta: { type: 'thinking_delta', thinking } })),
    error: (message) => data(JSON.stringify({ type: 'error', error: { type: 'overloaded_error', message } })),
    slots: [
      ['', (json) => json],
      ['', (json) => `{"type":${json}}`],
      ['', (json) => `{"type":"message_start","message":${json}}`],
      ['', (json) => `{"type":"message_start","message":{"usage":${json}}}`],
      ['', (json) => `{"type":"content_block_delta","delta":${json}}`],
      ['', (json) => `{"type":"content_block_delta","delta":{"text":${json},"thinking":${json}}}`],
      ['', (json) => `{"type":"message_delta","delta":${json},"usage":${json}}`],
      ['', (json) => `{"type":"message_delta","delta":{"stop_reason":${json}}}`],
      ['', (json) => `{"type":"message_delta","usage":{"input_tokens":${json},"output_tokens":${json}}}`],
      ['', (json) => `{"type":"message_delta","usage":{"cache_read_input_tokens":${json}}}`],
      ['', (json) => `{"type":"error","error":${json}}`],
    ],
  },
  google: {
    wire: WIRES.google!,
    label: 'Gemini',
    model: { model_name: 'google/m', api_key: 'k', google_url: 'https://models.example' },
    event: data,
    noise: [
      ...SSE_NOISE,
      WIRES.google!.chunk(''),
      data('{}'),
      data('{"candidates":[]}'),
      data('{"candidates":[{"content":null}]}'),
      data('{"candidates":[{"content":{"parts":[{"functionCall":{"name":"§"}}]}}]}'),
    ],
    reasoning: (text) =>
      data(JSON.stringify({ candidates: [{ content: { parts: [{ text, thought: true }] } }] })),
    error: (message) => data(JSON.stringify({ error: { code: 503, message, status: 'UNAVAILABLE' } })),
    slots: [
      ['', (json) => json],
      ['', (json) => `{"candidates":${json}}`],
      ['', (json) => `{"candidates":[${json}]}`],
      ['', (json) => `{"candidates":[{"content":${json}}]}`],
      ['', (json) => `{"candidates":[{"content":{"parts":${json}}}]}`],
      ['', (json) => `{"candidates":[{"content":{"parts":[${json}]}}]}`],
      ['', (json) => `{"candidates":[{"content":{"parts":[{"text":${json},"thought":${json}}]}}]}`],
      ['', (json) => `{"candidates":[{"finishReason":${json}}]}`],
      ['', (json) => `{"usageMetadata":${json}}`],
      ['', (json) => `{"usageMetadata":{"promptTokenCount":${json},"candidatesTokenCount":${json}}}`],
      ['', (json) => `{"usageMetadata":{"promptTokenCount":1,"thoughtsTokenCount":${json}}}`],
      ['', (json) => `{"promptFeedback":${json}}`],
      ['', (json) => `{"promptFeedback":{"blockReason":${json}}}`],
      ['', (json) => `{"error":${json}}`],
    ],
  },
  bedrock: {
    wire: WIRES.bedrock!,
    label: 'Bedrock',
    model: {
      model_name: 'bedrock/m',
      api_key: 'k',
      region: 'eu-west-1',
      bedrock_url: 'https://models.example',
    },
    event: (json, kind) => (kind === '' ? frame(json, 'contentBlockDelta') : frame(json, kind)),
    noise: [
      WIRES.bedrock!.chunk(''),
      frame('{"note":"§"}', 'odd'),
      frame('{}', 'contentBlockStop'),
      frame('{"delta":{"toolUse":{"input":"§"}}}', 'contentBlockDelta'),
    ],
    reasoning: (text) =>
      frame(JSON.stringify({ delta: { reasoningContent: { text } } }), 'contentBlockDelta'),
    error: (message) => frame(JSON.stringify({ message }), 'serviceUnavailableException', 'exception'),
    slots: [
      ['contentBlockDelta', (json) => json],
      ['contentBlockDelta', (json) => `{"delta":${json}}`],
      ['contentBlockDelta', (json) => `{"delta":{"text":${json},"reasoningContent":${json}}}`],
      ['messageStop', (json) => `{"stopReason":${json}}`],
      ['metadata', (json) => `{"usage":${json}}`],
      ['metadata', (json) => `{"usage":{"inputTokens":${json},"outputTokens":${json}}}`],
      ['metadata', (json) => `{"usage":{"inputTokens":1,"outputTokens":1,"cacheReadInputTokens":${json}}}`],
      ['constructor', (json) => json],
    ],
  },
  'cloudflare over REST': {
    ...CLOUDFLARE,
    model: { model_name: 'cloudflare/@cf/m', api_key: 'k', account_id: 'a' },
  },
  'cloudflare by the binding': {
    ...CLOUDFLARE,
    binding: true,
    model: { model_name: 'cloudflare/@cf/m' },
  },
}

/** Bedrock's exceptions are told with their names. */
export const told = ({ wire }: Provider, message: string): string =>
  wire === WIRES.bedrock ? `serviceUnavailableException: ${message}` : message
