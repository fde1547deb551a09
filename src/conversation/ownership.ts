/**
 * Whose a conversation is, and who may open it: to continue, read, follow, stop, delete or trace it. To anybody else it is
 * as unknown as an id that was never given out.
 *
 * A conversation belongs to the key that began it and, where that was proven, to the person: a user whom the key fixes, or
 * a visitor by the secret of a browser. A name that a caller merely claims proves nothing. It is a label, which narrows
 * what is opened and never widens it.
 */
import { ApiError } from '../errors'
import type { Asker } from '../turn/request'

/** Whose a conversation is, as it is stored. */
export interface Owner {
  owner: string
  userId: string
  /** who is proven to have begun it; absent, or '' in D1: nobody, whoever has its id and its key may open it */
  proof?: string
}

/** Whose a conversation is and how it began, as its row has it. */
export interface Begun {
  owner: Owner
  title: string
  /** milliseconds since 1970 */
  createdAt: number
}

/** The admin key on nobody's behalf. */
export const ADMIN: Asker = { owner: 'admin', userId: '' }

export const userProof = (userId: string): string => `user:${userId}`
/** @param digest of the visitor's secret */
export const visitorProof = (digest: string): string => `visitor:${digest}`

const reaches = ({ owner, reach }: Asker, other: string): boolean =>
  owner === ADMIN.owner || reach === 'all' || (reach === 'key' && owner === other)

/**
 * Whether a conversation is open to an asker: to a key that reaches it; else to the key that began it, in the hands of
 * its proven owner, or of anybody where it has none, since its id cannot be guessed.
 *
 * Who asks on behalf of a user does not open the conversation of another user.
 */
export function mayOpen(asker: Asker | undefined, { owner, userId, proof = '' }: Owner): boolean {
  if (!asker) return false
  const agree = asker.userId === '' || userId === '' || asker.userId === userId
  if (reaches(asker, owner)) return agree
  if (asker.owner !== owner) return false
  return proof === '' ? asker.userId === userId : agree && (asker.proofs ?? []).includes(proof)
}

/** Whose the conversations are that an asker begins. */
export const ownerOf = ({ owner, userId, proofs = [] }: Asker): Owner => ({
  owner,
  userId,
  ...(proofs[0] !== undefined && { proof: proofs[0] }),
})

/**
 * Whether nobody else passes for this asker. Whoever has the key of a page does, unless it is shown who asks. Keys that
 * open all that was begun with them are for servers: their requests come from one party.
 */
export const isToldApart = ({ owner, proofs = [], reach }: Asker): boolean =>
  owner === ADMIN.owner || reach !== undefined || proofs.length > 0

const SHORTEST_RANDOM = 16
const FEWEST_CHARACTERS = 8

/**
 * Whether a name that a client made up looks random, so that no other client comes upon it: 16 characters or more, of
 * several kinds, as `useChat` and `crypto.randomUUID()` make them.
 */
export function isUnguessable(name: string): boolean {
  const kinds = [/[a-z]/, /[A-Z]/, /[0-9]/].filter((kind) => kind.test(name)).length
  return name.length >= SHORTEST_RANDOM && kinds >= 2 && new Set(name).size >= FEWEST_CHARACTERS
}

/** Whose conversations are listed and deleted together. Absent: any. */
export interface Scope {
  owner?: string
  userId?: string
  proof?: string
}

/**
 * What an asker may list.
 * @param userId narrows it to a user
 * @returns undefined when that is nothing; `unproven` when nothing shows who asks
 */
export function scopeOf(asker: Asker, userId: string | undefined): Scope | 'unproven' | undefined {
  const named = asker.userId === '' ? userId : asker.userId
  if (userId !== undefined && named !== userId) return undefined
  const narrowed = named === undefined ? {} : { userId: named }
  if (asker.owner === ADMIN.owner || asker.reach === 'all') return narrowed
  if (asker.reach === 'key') return { owner: asker.owner, ...narrowed }
  const [proof] = asker.proofs ?? []
  return proof === undefined ? 'unproven' : { owner: asker.owner, proof, ...narrowed }
}

/** @throws ApiError 503 for a call without an asker, as a Worker of another version could make */
export function requireAsker(asker: Asker | undefined): asserts asker is Asker {
  if (!asker) throw new ApiError(503, 'Parley is being updated. Try again.', 1)
}
