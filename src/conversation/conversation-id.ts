/** Ids of conversations. They look random, but are derived from what they stand for. Also which names of chats nobody guesses. */

import { findConversationRow } from '../db/conversations'
import { historyStore } from '../registry/engines'
import type { Asker, AskRequest } from '../turn/request'
import { isToldApart } from './stored'

const DAY_MS = 86_400_000

/** The id of a new conversation, and until when the same request leads to it, in milliseconds since 1970. */
interface NewId {
  conversationId: string
  /** absent: always, if made from an idempotency key; never, if random */
  foundUntil?: number
}

/**
 * Makes the id of a new conversation. A retry of its first request gets the same id, from its idempotency key
 * or else its fingerprint. A server secret goes into it. Otherwise anyone who shares a key could compute other
 * people's ids.
 *
 * A fingerprint leads there for a day. Within that time the object must not begin a second conversation, since
 * whoever began the first one knows the id.
 */
export async function newConversationId(
  env: Cloudflare.Env,
  { asker, idempotencyKey, fingerprint }: Pick<AskRequest, 'asker' | 'idempotencyKey' | 'fingerprint'>,
): Promise<NewId> {
  const secret = env.ENCRYPTION_KEY ?? env.ADMIN_API_KEY
  const day = Math.floor(Date.now() / DAY_MS)
  if ((idempotencyKey === undefined && fingerprint === undefined) || !secret) {
    return { conversationId: await sealedId(env) }
  }
  const { owner, userId, proofs: [proof] = [] } = asker
  const named = idempotencyKey === undefined ? ['request', fingerprint, day] : ['key', idempotencyKey]
  const digest = await digestOf(`conversation ids ${secret}`, [
    owner,
    userId,
    ...named,
    ...(proof === undefined ? [] : [proof]),
  ])
  const conversationId = await sealedId(env, digest)
  return { conversationId, ...(idempotencyKey === undefined && { foundUntil: (day + 1) * DAY_MS }) }
}

/**
 * Makes the id of a conversation that its caller named. The same name gives another id for another key, another
 * user, another visitor, and somebody who only claims to be the user. It contains no secret: the name alone
 * lets its asker in, and the id must stay the same when the server's secrets change.
 * @param scope where the name is unique
 */
export function namedConversationId(asker: Asker, scope: string, name: string): Promise<string> {
  const { owner, userId, proofs: [proof = ''] = [] } = asker
  const visitor = proof.startsWith('visitor:') ? [proof] : []
  const claimed = userId !== '' && !isToldApart(asker) ? ['claimed'] : []
  return digestOf('named conversations', [owner, userId, 'name', scope, name, ...visitor, ...claimed])
}

const digestOf = async (secret: string, parts: (string | number | undefined)[]): Promise<string> =>
  asUuid(await hmacOf(secret, JSON.stringify(parts)))

/** The first 122 bits of a digest as a UUID of version 4. */
function asUuid(digest: Uint8Array): string {
  const bytes = digest.slice(0, 16)
  bytes[6] = (bytes[6]! & 0x0f) | 0x40
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  return [8, 12, 16, 20].reduceRight((text, at) => `${text.slice(0, at)}-${text.slice(at)}`, hexOf(bytes))
}

// Sealed ids show that this server made them.
//
// Asking an object for its conversation creates the object, and with it a file, even if there is no
// conversation. Callers can send any id. So the last eight digits of an id that the server makes are a digest
// of the others, under its secret. An id without that seal reaches its object only if its conversation is known
// elsewhere: begun before ids were sealed, begun under another secret, or imported. The name that a client gives to a chat
// reaches the object of its digest (api/http/chat-names.ts), mostly for a question that was admitted (api/http/admit-turn.ts).

/** Hexadecimal digits of a UUID that form the seal. */
const SEAL = 8

const encoder = new TextEncoder()

/** The HMAC of a text under a secret. */
export async function hmacOf(secret: string | Uint8Array, text: string): Promise<Uint8Array> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const bytes = typeof secret === 'string' ? encoder.encode(secret) : secret
  const key = await crypto.subtle.importKey('raw', bytes, algorithm, false, ['sign'])
  return new Uint8Array(await crypto.subtle.sign('HMAC', key, encoder.encode(text)))
}

/** In hexadecimal digits. */
const hexOf = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')

async function seal(env: Cloudflare.Env, beginning: string): Promise<string> {
  const secret = `sealed conversation ids ${env.ENCRYPTION_KEY ?? env.ADMIN_API_KEY ?? ''}`
  return hexOf(await hmacOf(secret, beginning)).slice(0, SEAL)
}

/** Seals an id. @param id a UUID; its last digits are replaced */
export async function sealedId(env: Cloudflare.Env, id: string = crypto.randomUUID()): Promise<string> {
  const beginning = id.slice(0, -SEAL)
  return beginning + (await seal(env, beginning))
}

/** Whether this server made an id. */
export async function isSealed(env: Cloudflare.Env, id: string): Promise<boolean> {
  const beginning = id.slice(0, -SEAL)
  return id === beginning + (await seal(env, beginning))
}

/** An id without a seal of its own, and its seal after it. */
const HANDLE = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})-([0-9a-f]{8})$/

/**
 * The id for callers who return before D1 knows the conversation. A client's own name for a conversation becomes a digest
 * without a seal, so the seal is appended.
 */
export async function handleOf(env: Cloudflare.Env, id: string): Promise<string> {
  return (await isSealed(env, id)) ? id : `${id}-${await seal(env, id)}`
}

/** The id in a handle, sealed or not. */
export const idIn = (handle: string): string => HANDLE.exec(handle)?.[1] ?? handle

/** The id of a handle that this server gave out with a seal; undefined for any other text, plain ids too. */
export async function idOfHandle(env: Cloudflare.Env, handle: string): Promise<string | undefined> {
  const id = idIn(handle)
  return id !== handle && handle === `${id}-${await seal(env, id)}` ? id : undefined
}

/** Whether an id may belong to a conversation with messages in a history collection. */
export async function mayHaveHistory(env: Cloudflare.Env, id: string, historyId: string): Promise<boolean> {
  if (await isSealed(env, id)) return true
  return (await historyStore(env, historyId).recentMessages(id, 0)).messages.length > 0
}

/**
 * Whether an id may belong to a conversation. If the id came from outside, check this before asking its object.
 */
export async function mayBeConversation(env: Cloudflare.Env, id: string): Promise<boolean> {
  if (await isSealed(env, id)) return true
  return (await findConversationRow(env.DB, id, Date.now())) !== undefined
}

// Whether a name that a client made up is random, so that nobody else comes upon it.

/**
 * How surprising a letter is after another one in English, in half bits to the base of 36: a row for each letter that comes before, the last one for the
 * beginning of a word. Names that people make up are of words, so their letters surprise little in any language of Europe.
 */
const SURPRISES = `
  ic89ie9i9ic894ici675eeihbi 7gig3igib8i8fi6hi9di8iii5i 8idi7hi4dia9ii4eiad68iiihi 9fi93cbi7iggdi5iia5idiiibi
  7h88ccfieii9a6ibe559iceb9i 7iii99ii4ii9ii4hi8i78iiiii 7eei3ic86ii9gc8fi98faiiiih 4iii2iii7iiiii6iidibgiiigi
  ega99cciiii9a46eia64idigie aiif2iiihiiiii5hii4i7iiiii ieie1ieiaiiii9iiii6gbiiiii 7hi84dig6ii6fi6gii89ahhiai
  69ha3iii7iiech57ii8iciiigi 9ib56g7icidcic7dii56d9iici hd99c7eific8a4cai5a88c8idi 4iie5iif7ii6ai8bi798aihfei
  iiiiiiiiiiiaiiiiiiii0ifiii 8i8a4ifi8ia9ea7iic6aadhi9i 7ibg4iia8ibgii8dhf84bi9ifi 8iei6ii36iigii7fia6bbieibi
  cdba6icicii875i8i666iiiiii 8iii1iii6iifiifiiiiihiiiii 8iii6ii45iiii85ii89ihiiiii 6i9i6iig9iigiii6iii2iiic8i
  ibii5iiieiig7a75ii46iidiib 6hhh2hhh9hhchhbhhhhh7hhhc9 6a8abaeb7gcb9a8aea86ce8ifi
`
  .trim()
  .split(/\s+/)
const BEGINNING = SURPRISES.length - 1

/** Bits for a digit, and for any other sign. */
const DIGIT = 3.3
const SIGN = 1
/** Bits for going on with one kind; for a lower case letter after a capital; for a capital after it; and for any other change. */
const SAME = 0.3
const HUMP = 0.5
const NEXT_HUMP = 1.5
const CHANGE = 2.5

const kindOf = (sign: string): string =>
  /[a-z]/.test(sign) ? 'lower' : /[A-Z]/.test(sign) ? 'upper' : /[0-9]/.test(sign) ? 'digit' : 'other'

/** How much a character of a name tells on average to whoever knows how people write, in bits. */
function surpriseOf(name: string): number {
  let bits = 0
  let before = ''
  let letter = BEGINNING
  for (const sign of name) {
    const kind = kindOf(sign)
    const isHump = before === 'upper' && kind === 'lower'
    const isNext = before === 'lower' && kind === 'upper'
    if (before !== '') bits += kind === before ? SAME : isHump ? HUMP : isNext ? NEXT_HUMP : CHANGE
    if (kind === 'lower' || kind === 'upper') {
      const at = sign.toLowerCase().charCodeAt(0) - 97
      bits += Number.parseInt(SURPRISES[kind === before || isHump ? letter : BEGINNING]![at]!, 36) / 2
      letter = at
    } else bits += kind === 'digit' ? DIGIT : SIGN
    before = kind
  }
  return bits / name.length
}

/** Whether a name repeats itself or counts: `abcabcabc`, `0123456789`, `a1b2c3d4`. */
function isRegular(name: string): boolean {
  const pairs = new Set(Array.from({ length: name.length - 1 }, (_, at) => name.slice(at, at + 2)))
  if (pairs.size < 0.6 * (name.length - 1)) return true
  return [1, 2].some((lag) => {
    const steps = new Map<number, number>()
    for (let at = lag; at < name.length; at++) {
      const step = name.charCodeAt(at) - name.charCodeAt(at - lag)
      steps.set(step, (steps.get(step) ?? 0) + 1)
    }
    return Math.max(...steps.values()) > 0.5 * (name.length - lag)
  })
}

/** Versions 4 and 7: most of the others tell a time and a machine. */
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/gi
const HEX = /[0-9a-f]{32,}/gi
const TOKEN = /[A-Za-z0-9_-]{21,}/g
/** What is no part of a random token: a word, or a time or another number. */
const WORD = /(?<![A-Za-z0-9])[a-z]{6,}(?=[-_])|[0-9]{10,}/g
/** As `generateId` of the AI SDK makes them. 95 bits are fewer than others have, but too many to come upon. */
const AI_SDK = /^(?=.*[a-z])(?=.*[A-Z])[A-Za-z0-9]{16}$/
/** The shortest ids of libraries: the AI SDK, nanoid and assistant-ui. One in a thousand looks like words, and the last have 41 bits. */
const MADE_UP = /^([A-Za-z0-9]{16}|[A-Za-z0-9_-]{21}|__LOCALID_[A-Za-z0-9]{7})$/

/**
 * Bits that a character has at least. Among 10,000 random names of a form, hardly one has less; of words and numbers hardly any
 * has more.
 */
const LEAST_HEX = 3.75
const LEAST = 5
const LEAST_AI_SDK = 5.2
const LEAST_TOTAL = 122

/** How many bits a token has if it is random, by the characters in it. */
function bitsOf(token: string): number {
  const letters = (/[a-z]/.test(token) ? 26 : 0) + (/[A-Z]/.test(token) ? 26 : 0)
  const isMixed = letters > 26 || /[0-9]/.test(token)
  return token.length * Math.log2(letters + (isMixed ? 10 : 0))
}

const isRandom = (token: string, least: number): boolean => surpriseOf(token) >= least && !isRegular(token)

/**
 * Whether a name has 122 random bits by its form, as `crypto.randomUUID()`, nanoid, 16 bytes in base64url or hexadecimal have
 * them, or is an id of the AI SDK. Something may stand before and after it. Length alone proves nothing: `chat-1764282000000` is
 * long, and others come upon it.
 */
export function isUnguessable(name: string): boolean {
  if (AI_SDK.test(name)) return isRandom(name, LEAST_AI_SDK)
  const hex = [
    ...(name.match(UUID) ?? []).map((uuid) => uuid.replaceAll('-', '')),
    ...(name.match(HEX) ?? []),
  ]
  if (hex.some((digits) => isRandom(digits.toLowerCase(), LEAST_HEX))) return true
  return (name.match(TOKEN) ?? [])
    .map((token) => token.replace(WORD, ''))
    .some((token) => /[g-z]/i.test(token) && bitsOf(token) >= LEAST_TOTAL && isRandom(token, LEAST))
}

/** Whether a name may be one that a library made up, although it is not known to be random. */
export const mayBeMadeUp = (name: string): boolean => MADE_UP.test(name)
