import { describe, expect, it } from 'vitest'
import { type Access, ADMIN } from '../../src/auth/access'
import { identify, mayAsk, pinnedModel } from '../../src/auth/pins'

const key = (parts: Partial<Access>): Access => ({ ...ADMIN, owner: '1', keyId: 1, ...parts })

describe('the user', () => {
  it.each([
    ['nobody names one', {}, undefined, ''],
    ['the request names one', {}, 'ann', 'ann'],
    ['a scoped key fixes one', { embedded: { user_id: 'bob' } }, undefined, 'bob'],
    ['the request contradicts a scoped key', { embedded: { user_id: 'bob' } }, 'ann', 'bob'],
    ['the request contradicts the key', { limits: { user_id: 'eve' } }, 'ann', 'eve'],
    [
      'a scoped key contradicts its parent',
      { limits: { user_id: 'eve' }, embedded: { user_id: 'bob' } },
      '',
      'eve',
    ],
  ])('when %s', (_, parts, named, userId) => {
    expect(identify([key(parts)], named)).toEqual({ owner: '1', userId })
  })

  it('is one, whatever several keys say', () => {
    const ann = key({ limits: { user_id: 'ann' } })
    expect(identify([key({ owner: '7' }), ann], 'bob')).toEqual({ owner: '7', userId: 'ann' })
    expect(() => identify([ann, key({ limits: { user_id: 'bob' } })], undefined)).toThrow('Forbidden')
  })
})

describe('the model', () => {
  it('is the one that a key or its scoped key fixes', () => {
    expect(pinnedModel([key({})])).toBeUndefined()
    expect(pinnedModel([key({ embedded: { conversation_model_id: 'm' } })])).toBe('m')
    const both = key({ limits: { conversation_model_id: 'k' }, embedded: { conversation_model_id: 'm' } })
    expect(pinnedModel([both])).toBe('k')
    expect(mayAsk([both], 'm')).toBe(false)
    expect(mayAsk([both, key({})], 'k')).toBe(true)
    expect(() => pinnedModel([both, key({ limits: { conversation_model_id: 'x' } })])).toThrow('Forbidden')
  })
})
