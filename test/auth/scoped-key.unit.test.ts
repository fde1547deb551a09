import { describe, expect, it } from 'vitest'
import { embeddedParameters, isSignedBy, parseScopedKey } from '../../src/auth/authenticate'

// Contract 3.2, reproduced with the official client.
const PARENT = 'RN23GFr1s6jQ9kgSNg2O7fYcAUXU7127'
const SCOPED =
  'OW9DYWZGS1Q1RGdSbmo0S1QrOWxhbk9PL2kxbTU1eXA3bCthdmE5eXJKRT1STjIzeyJmaWx0ZXJfYnkiOiJjb21wYW55X2lkOjEyNCIsImV4cGlyZXNfYXQiOjE5MDYwNTQxMDZ9'

async function scoped(parent: string, parameters: string): Promise<string> {
  const encoder = new TextEncoder()
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const key = await crypto.subtle.importKey('raw', encoder.encode(parent), algorithm, false, ['sign'])
  const signature = await crypto.subtle.sign('HMAC', key, encoder.encode(parameters))
  const digest = Buffer.from(signature).toString('base64')
  return Buffer.from(digest + parent.slice(0, 4) + parameters).toString('base64')
}

describe('scoped keys', () => {
  it('reads the key that the official client makes', async () => {
    const key = parseScopedKey(SCOPED)!
    expect(key.prefix).toBe('RN23')
    expect(await isSignedBy(key, PARENT)).toBe(true)
    expect(embeddedParameters(key)).toEqual({
      values: { filter_by: 'company_id:124' },
      expiresAt: 1906054106,
    })
  })

  it('is signed by no other key', async () => {
    const key = parseScopedKey(SCOPED)!
    expect(await isSignedBy(key, `${PARENT}x`)).toBe(false)
    expect(await isSignedBy({ ...key, digest: '!'.repeat(44) }, PARENT)).toBe(false)
    const parameters = new TextEncoder().encode('{"filter_by":"company_id:125","expires_at":1906054106}')
    expect(await isSignedBy({ ...key, parameters }, PARENT)).toBe(false)
  })

  it('signs and reads parameters in any script', async () => {
    const key = parseScopedKey(
      await scoped(PARENT, '{"filter_by":"город:Москва","per_page":5,"prefix":false}'),
    )!
    expect(await isSignedBy(key, PARENT)).toBe(true)
    expect(embeddedParameters(key)).toEqual({
      values: { filter_by: 'город:Москва', per_page: '5', prefix: 'false' },
    })
  })

  it.each(['{"filter_by":["a"]}', '{"filter_by":null}', '{"expires_at":"1"}', '{"expires_at":-1}', '{oops'])(
    'is invalid with %s',
    async (parameters) => {
      expect(embeddedParameters(parseScopedKey(await scoped(PARENT, parameters))!)).toBeUndefined()
    },
  )

  // What is no object is not an empty one: that would lift every restriction.
  it.each(['null', '5', '"filter_by"', 'true', '[]', '["filter_by"]'])(
    'takes %s for no parameters',
    async (text) => {
      const parameters = new TextEncoder().encode(text)
      expect(embeddedParameters({ digest: '', prefix: '', parameters })).toBeUndefined()
      expect(parseScopedKey(await scoped(PARENT, text.padEnd(20)))).toBeUndefined()
    },
  )

  it.each(['xyz', 'a'.repeat(200), '='.repeat(60), '🔑'.repeat(30)])('takes %s for no scoped key', (key) => {
    expect(parseScopedKey(key)).toBeUndefined()
  })
})
