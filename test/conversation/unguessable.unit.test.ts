/** Which names that clients make up count as random. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isUnguessable, mayBeMadeUp } from '../../src/conversation/conversation-id'

const DIGITS = '0123456789'
const LOWER = 'abcdefghijklmnopqrstuvwxyz'
const BASE62 = DIGITS + LOWER + LOWER.toUpperCase()
const HEX = DIGITS + LOWER.slice(0, 6)

const of = (alphabet: string, length: number) =>
  fc
    .array(fc.constantFrom(...alphabet), { minLength: length, maxLength: length })
    .map((signs) => signs.join(''))
const uuid = (version: number) =>
  fc
    .tuple(of(HEX, 8), of(HEX, 4), of(HEX, 3), fc.constantFrom(...'89ab'), of(HEX, 3), of(HEX, 12))
    .map(([a, b, c, variant, d, e]) => `${a}-${b}-${version}${c}-${variant}${d}-${e}`)
const after = (prefix: string, name: fc.Arbitrary<string>) => name.map((random) => prefix + random)

const FORMS: Record<string, fc.Arbitrary<string>> = {
  'a UUID of version 4': uuid(4),
  'a UUID of version 7': after(
    '0193',
    uuid(7).map((id) => id.slice(4)),
  ),
  'a UUID in capitals': uuid(4).map((id) => id.toUpperCase()),
  'a UUID after a prefix': after('chat-', uuid(4)),
  'two UUIDs': fc.tuple(uuid(4), uuid(4)).map((both) => both.join('')),
  '16 bytes in hexadecimal': of(HEX, 32),
  '16 bytes in base64url': of(`${BASE62}-_`, 22),
  '32 bytes in base64url': of(`${BASE62}-_`, 43),
  'an id of nanoid': of(`${BASE62}-_`, 21),
  'an id of cuid2': after('c', of(DIGITS + LOWER, 24)),
  'a thread of OpenAI': after('thread_', of(BASE62, 24)),
  'an id of useChat': of(BASE62, 16),
}

test.each(Object.entries(FORMS))('%s is random', (_, form) => {
  const names = fc.sample(form, 5_000)
  const refused = names.filter((name) => !isUnguessable(name))
  // What people might have thought of turns up by chance too, as monkeys write Hamlet.
  expect(refused.length, refused.slice(0, 3).join()).toBeLessThan(25)
})

test.each([
  'my-support-chat-01',
  'chat-1764282000000',
  'user-42-session-1',
  'question-number-1',
  'MySupportChat001',
  'customerSession42A',
  'AcmeCorpHelpBot1',
  'CustomerSupportChat2025',
  'customer-support-conversation-with-acme-corporation-2025',
  'Unterhaltung-mit-Kunde-Nr-12',
  'john.doe@example.com-chat',
  'https://example.com/docs/getting-started#chat-1',
  '2025-11-28T12:00:00.000Z',
  '1764282000000-k3j9x0q2p1z',
  'ABCDEFGH12345678',
  'abc123abc123abc123abc123',
  'a1b2c3d4e5f6g7h8i9j0k1l2m3',
  'abcdefghijklmnopqrstuvwxyz',
  '00000000-0000-4000-8000-000000000001',
  '12345678-1234-4234-8234-123456789012',
  'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee',
  'deadbeefdeadbeefdeadbeefdeadbeef',
  '0123456789abcdef0123456789abcdef',
  '20251128120000000000000000000042',
  // A time and a machine, or a counter.
  '507f1f77bcf86cd799439011',
  '6ba7b810-9dad-11d1-80b4-00c04fd430c8',
  '',
  '1',
])('%s is not', (name) => {
  expect(isUnguessable(name)).toBe(false)
})

describe('words and numbers', () => {
  const WORDS =
    'my support chat session user visitor page question number thread customer order help desk ticket'
  const MORE =
    'conversation window browser kunde gespräch nachricht client boutique panier cliente pedido mensaje'
  const word = fc.constantFrom(...`${WORDS} ${MORE}`.split(' '))
  const capital = (text: string) => text[0]!.toUpperCase() + text.slice(1)
  const number = fc.oneof(
    fc.nat(99).map(String),
    fc.nat(9_999).map((count) => String(count).padStart(4, '0')),
    fc.nat(10_000_000_000).map((ms) => String(1_764_000_000_000 + ms)),
  )

  test('are not random, however they are put together', () => {
    const parts = fc.array(fc.tuple(word, fc.option(number, { freq: 2 })), { minLength: 1, maxLength: 8 })
    const joint = fc.constantFrom('-', '_', '.', ' ', 'capitals')
    fc.assert(
      fc.property(parts, joint, number, (said, between, last) => {
        const pieces = [...said.flatMap(([text, count]) => [text, ...(count === null ? [] : [count])]), last]
        const name = between === 'capitals' ? pieces.map(capital).join('') : pieces.join(between)
        expect(isUnguessable(name)).toBe(false)
      }),
      { numRuns: 5_000 },
    )
  })
})

test('the shortest ids of libraries are known by their form', () => {
  for (const id of ['__LOCALID_a1B2c3D', 'aB3dE5gH7jK9mN1p', 'V1StGXR8_Z5jdHi6B-myT']) {
    expect(mayBeMadeUp(id)).toBe(true)
  }
  for (const id of ['', '1', 'my-support-chat-01', '__LOCALID_support-1']) expect(mayBeMadeUp(id)).toBe(false)
})
