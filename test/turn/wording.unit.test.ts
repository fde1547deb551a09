/** What a conversation's object writes for a piece of an answer is what the protocol's encoder in the Worker writes. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { lineEncoder, pieceWording } from '../../src/api/ai-chat/encoder'
import { WORDS } from '../../src/api/ai-chat/words'
import { chunkWording, completionEncoder } from '../../src/api/openai/encoder'
import { DELTA_WORDING, responseEncoder } from '../../src/api/openai/responses'
import { answerEncoder, answerWording } from '../../src/api/opensearch/rag'
import { LOG_WORDING, logEncoder } from '../../src/api/parley/encoder'
import type { TurnEncoder } from '../../src/api/shared/stream'
import { messageEncoder, STREAM_WORDING } from '../../src/api/typesense/encoder'
import {
  PLAIN_WORDING,
  TEXT_DELTA_WORDING,
  textEncoder,
  uiStreamEncoder,
} from '../../src/api/ui-stream/encoder'
import { contentOf } from '../../src/lib/parts'
import type { TurnEvent } from '../../src/turn/events'
import { type Wording, writePiece } from '../../src/turn/events'

const MODEL = { model: 'guide "x"', created: 17, fields: {} }

const SEARCHED = { found: {}, hasMemory: false, ignoresFailure: false, whole: () => ({}), failed: () => ({}) }

type Encoding = Pick<TurnEncoder, 'encode'>

/** Each protocol: its encoder for a conversation, and its wording. */
const PROTOCOLS: Record<string, [(conversation: string) => Encoding, Wording]> = {
  typesense: [
    (conversationId) =>
      messageEncoder({ conversationId, question: 'q', shape: 'single', ttl: 1, withHistory: false }),
    STREAM_WORDING,
  ],
  parley: [() => logEncoder(), LOG_WORDING],
  'UI message stream': [() => uiStreamEncoder({ fields: {}, citations: 'parts' }), TEXT_DELTA_WORDING],
  OpenSearch: [() => answerEncoder(SEARCHED), answerWording(false)],
  'OpenSearch with a memory': [() => answerEncoder({ ...SEARCHED, hasMemory: true }), answerWording(true)],
  'plain text': [() => textEncoder, PLAIN_WORDING],
  'chat completions': [() => completionEncoder(MODEL, false), chunkWording(MODEL, false)],
  'chat completions with usage': [() => completionEncoder(MODEL, true), chunkWording(MODEL, true)],
  responses: [() => responseEncoder({ ...MODEL, previous: null, handle: 'h' }), DELTA_WORDING],
  ...Object.fromEntries(
    Object.entries(WORDS).map(([dialect, words]) => [
      `AI Chat Protocol ${dialect}`,
      [() => lineEncoder({ words } as never), pieceWording(words)],
    ]),
  ),
}

const TEXT = fc
  .oneof(fc.string({ unit: 'binary', minLength: 1 }), fc.constantFrom('"', '\\u0000', '\u2028', '$&', 'ü\n'))
  .map((text) => text.toWellFormed())

describe.each(Object.entries(PROTOCOLS))('%s', (_, [encoderOf, wording]) => {
  it('is written alike by the object and by the Worker', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', minLength: 1 }).map((id) => id.toWellFormed()),
        fc.integer({ min: 1, max: 999 }),
        fc.array(TEXT, { minLength: 1, maxLength: 5 }),
        (conversation_id, turn, texts) => {
          const encoder = encoderOf(conversation_id)
          const place = { conversation_id, turn }
          const begin = { type: 'question', question: contentOf('q'), ...place, seq: 0 } as TurnEvent
          encoder.encode(begin)
          for (const [piece, text] of texts.entries()) {
            const seq = piece + 1
            const written = encoder.encode({ type: 'delta', text, ...place, seq })
            // The first piece opens the answer, and is written by the Worker.
            if (piece > 0) expect(writePiece(wording, text, { ...place, seq, piece })).toBe(written)
          }
        },
      ),
    )
  })

  it('is written alike where a piece is long', () => {
    const text = '\u{1f600}"'.repeat(9_000)
    const place = { conversation_id: 'c', turn: 1 }
    const encoder = encoderOf('c')
    encoder.encode({ type: 'question', question: contentOf('q'), ...place, seq: 0 })
    encoder.encode({ type: 'delta', text: 'a', ...place, seq: 1 })
    expect(writePiece(wording, text, { ...place, seq: 2, piece: 1 })).toBe(
      encoder.encode({ type: 'delta', text, ...place, seq: 2 }),
    )
  })
})
