import { env } from 'cloudflare:workers'
import { describe, expect, it } from 'vitest'
import { open, reseal, sameDigest, seal } from '../../src/db/sealing'

const OLD = { ENCRYPTION_KEY: 'the key of last year' }
const NEW = { ENCRYPTION_KEY: 'the key of this year' }
const CHANGING = { ...NEW, ENCRYPTION_KEY_PREVIOUS: OLD.ENCRYPTION_KEY }

describe('sealing', () => {
  it('hides a secret, each time in another way, and shows it again', async () => {
    const [one, two] = [await seal('sk-1234567890', env), await seal('sk-1234567890', env)]
    expect(one).not.toBe(two)
    expect(one + two).not.toContain('sk-1234')
    expect(await open(one, env)).toBe('sk-1234567890')
  })

  it('does not open what was changed, nor under another key', async () => {
    const sealed = await seal('secret', OLD)
    // Not the last letter: some of its bits are padding, and changing those changes nothing.
    const changed = `${sealed.slice(0, 20)}${sealed[20] === 'A' ? 'B' : 'A'}${sealed.slice(21)}`
    for (const wrong of [
      changed,
      sealed.slice(0, 20),
      sealed.replace('v1.', 'v2.'),
      'secret',
      '',
      'v1.***',
    ]) {
      await expect(open(wrong, OLD)).rejects.toMatchObject({ status: 400 })
    }
    await expect(open(sealed, NEW)).rejects.toThrow('ENCRYPTION_KEY_PREVIOUS')
  })

  it('refuses to work without a key worth the name', async () => {
    await expect(seal('secret', {})).rejects.toThrow('ENCRYPTION_KEY')
    await expect(seal('secret', { ENCRYPTION_KEY: 'too short' })).rejects.toMatchObject({ status: 400 })
  })

  it('goes on while the key is being changed', async () => {
    const sealed = await seal('secret', OLD)
    expect(await open(sealed, CHANGING)).toBe('secret')
    const anew = await reseal(sealed, CHANGING)
    expect(await open(anew!, NEW)).toBe('secret')
    expect(await reseal(anew!, CHANGING)).toBeUndefined()
    await expect(reseal('v1.AAAA', CHANGING)).rejects.toMatchObject({ status: 400 })
  })
})

describe('digests', () => {
  it('are compared whole', () => {
    expect(sameDigest('abc', 'abc')).toBe(true)
    for (const other of ['abd', 'xbc', 'ab', 'abcd', '']) expect(sameDigest('abc', other)).toBe(false)
  })
})
