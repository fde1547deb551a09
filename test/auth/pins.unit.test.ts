import { describe, expect, it } from 'vitest'
import { type Access, ADMIN, identify, mayAsk, pinnedModel } from '../../src/auth/access'

const key = (parts: Partial<Access>): Access => ({ ...ADMIN, owner: '1', keyId: 1, ...parts })

const HEADER = 'x-typesense-user-id'

describe('the user', () => {
  it.each([
    ['nobody names one', {}, undefined, '', false],
    ['the request names one', {}, 'ann', 'ann', false],
    ['a scoped key fixes one', { embedded: { user_id: 'bob' } }, undefined, 'bob', true],
    ['a scoped key fixes one as the header', { embedded: { [HEADER]: 'bob' } }, 'ann', 'bob', true],
    ['the request contradicts a scoped key', { embedded: { user_id: 'bob' } }, 'ann', 'bob', true],
    ['the request contradicts the key', { limits: { user_id: 'eve' } }, 'ann', 'eve', true],
    [
      'a scoped key contradicts its parent',
      { limits: { user_id: 'eve' }, embedded: { user_id: 'bob' } },
      '',
      'eve',
      true,
    ],
    [
      'a scoped key contradicts its parent in the words of the header',
      { limits: { user_id: 'eve' }, embedded: { [HEADER]: 'bob' } },
      '',
      'eve',
      true,
    ],
  ])('when %s', (_, parts, named, userId, proven) => {
    expect(identify([key(parts)], named)).toEqual({ owner: '1', userId, proven })
  })

  it('is one, whatever several keys say', () => {
    const ann = key({ limits: { user_id: 'ann' } })
    // What another key fixes says nothing about the users of the first one.
    expect(identify([key({ owner: '7' }), ann], 'bob')).toEqual({ owner: '7', userId: 'ann', proven: false })
    expect(() => identify([], 'ann')).toThrow('Forbidden')
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
