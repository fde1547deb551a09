/**
 * Who owns a conversation, and who may open it: to continue, read, follow, stop, delete or trace it. For
 * anybody else the conversation does not exist, just like an id that was never given out.
 *
 * A conversation belongs to the key that began it and, if proven, to a person: a user fixed in the key, or a
 * visitor known by the browser's secret. A name that a caller only claims proves nothing. It is a label: it can
 * narrow what is opened, but never widen it.
 */
import { ApiError } from '../errors'
import type { Asker } from '../turn/request'

/** The owner of a conversation, as stored. */
export interface Owner {
  owner: string
  userId: string
  /** who provably began it. Absent, or '' in D1: nobody; whoever has its id and its key may open it */
  proof?: string
}

/** The admin key, acting for nobody. */
export const ADMIN: Asker = { owner: 'admin', userId: '' }

export const userProof = (userId: string): string => `user:${userId}`
/** @param digest of the visitor's secret */
export const visitorProof = (digest: string): string => `visitor:${digest}`

const reaches = ({ owner, reach }: Asker, other: string): boolean =>
  owner === ADMIN.owner || reach === 'all' || (reach === 'key' && owner === other)

/** Whether an asker sees what everybody said of a conversation's answers, or only what they said themselves. */
export const seesAll = (asker: Asker, { owner }: Owner): boolean => reaches(asker, owner)

/**
 * Whether a conversation is open to an asker. It is open to a key that reaches it. The key that began it also
 * opens it: for its proven owner, or for anybody if it has none, because its id cannot be guessed.
 *
 * An asker who acts for one user does not open another user's conversation.
 */
export function mayOpen(asker: Asker | undefined, { owner, userId, proof = '' }: Owner): boolean {
  if (!asker) return false
  const agree = asker.userId === '' || userId === '' || asker.userId === userId
  if (reaches(asker, owner)) return agree
  if (asker.owner !== owner) return false
  return proof === '' ? asker.userId === userId : agree && (asker.proofs ?? []).includes(proof)
}

/** The owner of conversations that an asker begins. */
export const ownerOf = ({ owner, userId, proofs = [] }: Asker): Owner => ({
  owner,
  userId,
  ...(proofs[0] !== undefined && { proof: proofs[0] }),
})

/** Whether what two askers begin belongs to the same key and person. */
export function isSameOwner(one: Asker, other: Asker): boolean {
  const [a, b] = [ownerOf(one), ownerOf(other)]
  return a.owner === b.owner && a.userId === b.userId && a.proof === b.proof
}

/**
 * Whether nobody else can pass for this asker. Anybody with a page's key can, unless there is a proof of who
 * asks. A key that opens all conversations begun with it is a server's, so all its requests come from one
 * party.
 */
export const isToldApart = ({ owner, proofs = [], reach }: Asker): boolean =>
  owner === ADMIN.owner || reach !== undefined || proofs.length > 0

/** Whose conversations are listed and deleted together. Absent: anybody's. */
export interface Scope {
  owner?: string
  userId?: string
  proof?: string
}

/**
 * What an asker may list.
 * @param userId narrows it to one user
 * @param mine narrows it to what the asker provably began
 * @returns undefined if that is nothing; `unproven` if there is no proof of who asks
 */
export function scopeOf(
  asker: Asker,
  userId: string | undefined,
  mine = false,
): Scope | 'unproven' | undefined {
  const named = asker.userId === '' ? userId : asker.userId
  if (userId !== undefined && named !== userId) return undefined
  const narrowed = named === undefined ? {} : { userId: named }
  if (!mine && (asker.owner === ADMIN.owner || asker.reach === 'all')) return narrowed
  if (!mine && asker.reach === 'key') return { owner: asker.owner, ...narrowed }
  const [proof] = asker.proofs ?? []
  return proof === undefined ? 'unproven' : { owner: asker.owner, proof, ...narrowed }
}

/** The refusal of a list or a deletion without a proof of who asks. */
export const unproven = (does: string, action: string): ApiError =>
  new ApiError(
    401,
    `Forbidden - this key ${does} the conversations of a visitor or user who is shown to ask: send the visitor's secret in \`X-Parley-Visitor\`, use a key that fixes the user, or one with the action \`conversations:${action}\`.`,
  )

/** @throws ApiError 503 for a call without an asker, which a Worker of another version can make */
export function requireAsker(asker: Asker | undefined): asserts asker is Asker {
  if (!asker) throw new ApiError(503, 'Parley is being updated. Try again.', 1)
}
