/** The streams of each provider's wire, for upstream.mjs: every chunk of it carries one word. */
import { EventStreamCodec } from '@smithy/core/event-streams'

/** @param {unknown} data */
const event = (data) => `data: ${JSON.stringify(data)}\n\n`

/** Anthropic names its events. @param {{ type: string }} data */
const named = (data) => `event: ${data.type}\n${event(data)}`

const codec = new EventStreamCodec(
  (bytes) => new TextDecoder().decode(/** @type {Uint8Array} */ (bytes)),
  (text) => new TextEncoder().encode(text),
)

/**
 * @param {string} type
 * @param {unknown} payload
 */
const frame = (type, payload) =>
  codec.encode({
    headers: {
      ':event-type': { type: 'string', value: type },
      ':content-type': { type: 'string', value: 'application/json' },
      ':message-type': { type: 'string', value: 'event' },
    },
    body: new TextEncoder().encode(JSON.stringify(payload)),
  })

/**
 * @param {object} delta
 * @param {string | null} finish_reason
 */
const completion = (delta, finish_reason = null) =>
  event({
    id: 'chatcmpl-bench',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'bench',
    choices: [{ index: 0, delta, finish_reason }],
  })

/**
 * @typedef {object} Wire
 * @property {RegExp} path of the requests for a stream
 * @property {string} type of the stream's content
 * @property {(string | Uint8Array)[]} begin
 * @property {(word: string) => string | Uint8Array} chunk
 * @property {(string | Uint8Array)[]} end
 * @property {true} [byPath] whether a path, and not a property of the body, asks for a stream
 */

/** @type {Record<string, Wire>} The first whose path fits is spoken. */
export const WIRES = {
  google: {
    path: /:streamGenerateContent$/,
    byPath: true,
    type: 'text/event-stream',
    begin: [],
    chunk: (text) => event({ candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0 }] }),
    end: [event({ candidates: [{ content: { parts: [{ text: '' }] }, finishReason: 'STOP', index: 0 }] })],
  },
  anthropic: {
    path: /\/v1\/messages$/,
    type: 'text/event-stream',
    begin: [named({ type: 'message_start', message: { usage: { input_tokens: 1, output_tokens: 1 } } })],
    chunk: (text) => named({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }),
    end: [
      named({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } }),
      named({ type: 'message_stop' }),
    ],
  },
  bedrock: {
    path: /\/converse-stream$/,
    byPath: true,
    type: 'application/vnd.amazon.eventstream',
    begin: [frame('messageStart', { role: 'assistant' })],
    chunk: (text) => frame('contentBlockDelta', { contentBlockIndex: 0, delta: { text } }),
    end: [
      frame('messageStop', { stopReason: 'end_turn' }),
      frame('metadata', { usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } }),
    ],
  },
  'workers-ai': {
    path: /\/ai\/run\//,
    type: 'text/event-stream',
    begin: [],
    chunk: (response) => event({ response, p: 'abcdefgh' }),
    end: ['data: [DONE]\n\n'],
  },
  openai: {
    path: /./,
    type: 'text/event-stream',
    begin: [],
    chunk: (content) => completion({ content }),
    end: [completion({}, 'stop'), 'data: [DONE]\n\n'],
  },
}
