/** What a conversation has stored as JSON is read by its shape. */
import { describe, expect, it } from 'vitest'
import { documentsShape, metaShapes, noteShape, usageShape } from '../../src/conversation/stored'
import { readStored } from '../../src/lib/stored-json'

const usage = { day: '2026-11-22', owner: 'admin', modelId: 'm', inputTokens: 3, outputTokens: 4 }
const conversation = {
  id: 'c',
  historyId: 'h',
  modelId: 'm',
  owner: 'admin',
  userId: '',
  protocol: 'parley',
  title: 'Why?',
  createdAt: 1,
  updatedAt: 2,
  expiresAt: 3,
}
const turn = {
  conversationId: 'c',
  turn: 1,
  question: 'Why?',
  standalone: null,
  answer: 'So.',
  finishReason: 'stop',
  citations: '[]',
  usage: '{}',
  timings: '{}',
  trace: '{}',
  createdAt: 1,
  expiresAt: 3,
}

describe('what a conversation has stored', () => {
  it.each([
    ['a turn', noteShape(), { conversation, turn: { ...turn, followups: '["Who?"]' }, usage }],
    ['a turn, from before its suggestions had a column', noteShape(), { conversation, turn, usage }],
    [
      'a turn that replaces others',
      noteShape(),
      { conversation, turn, usage, others: [usage], replaced: [1] },
    ],
    ['a cost', noteShape(), { usage, copied: true }],
    ['a beginning', noteShape(), { conversation: { ...conversation, proof: 'user:ann' } }],
    [
      'itself, from before proofs',
      metaShapes().self,
      {
        incarnation: 'i',
        owner: { owner: '1', userId: 'ann', reach: 'own' },
        title: '',
        protocol: '',
        created_at: 0,
        histories: [],
      },
    ],
    ['usage, with what a later version adds', usageShape(), { model: 'm', cached_tokens: 5 }],
  ])('is read as it was written: %s', (_, shape, value) => {
    expect(readStored<unknown>(shape, JSON.stringify(value))).toEqual(value)
  })

  it.each([
    ['a turn without its cost', noteShape(), { turn }],
    ['a cost without a number', noteShape(), { usage: { ...usage, inputTokens: '3' } }],
    [
      'a conversation without its histories',
      metaShapes().self,
      { incarnation: 'i', title: '', protocol: '', created_at: 0 },
    ],
    [
      'a message of nobody',
      documentsShape(),
      [{ conversation_id: 'c', role: 'system', message: '', timestamp: 1, model_id: 'm' }],
    ],
  ])('is refused where no version has written it: %s', (_, shape, value) => {
    expect(() => readStored<unknown>(shape, JSON.stringify(value))).toThrow(
      expect.objectContaining({ name: 'ValiError' }),
    )
  })
})
