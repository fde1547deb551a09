/** The calls of a collection's object, and how objects of collections call each other. */

import { objectCalls, objectStubs, type Repetitions } from '../../durable/objects'
import type { Outcome } from '../../errors'
import type { ReferenceAnswer } from '../documents/references'
import type { Referrer } from '../schema/layout'
import type { JoinAnswer, JoinQuestion } from '../types'

/** What a collection's object offers to others. */
export interface Peer {
  /** Answers another collection's search about documents that are related to its own. */
  join(question: JoinQuestion): Promise<Outcome<JoinAnswer>>
  /**
   * Looks up values of another collection's reference field, and notes that it refers to this one.
   * @param as the name that it uses for this collection @param keys a JSON list
   */
  refer(referrer: Referrer, as: string, keys: string): Promise<Outcome<ReferenceAnswer>>
  /**
   * One step of what follows when documents that others refer to are deleted.
   * @param field the reference field here @param keys its values that are gone, a JSON list
   * @param from where they were deleted. Nothing follows if the field refers to something else by now.
   */
  cascade(field: string, keys: string, from: CascadeSource): Promise<Cascaded>
  /** Ends the search with this ticket at its next pause, because its caller is gone. */
  abandon(ticket: string): Promise<void>
}

/** Where documents were deleted that others refer to. */
export interface CascadeSource {
  objectId: string
  /** the field there whose values are gone */
  target: string
}

/** Whether more documents refer to the deleted ones; `gone`: the field does not refer there, or does not cascade. */
export type Cascaded = 'more' | 'done' | 'gone'

/** Which calls may be repeated when their outcome is unknown (durable/objects.ts). */
export const COLLECTION_CALLS = {
  // Reading.
  summary: 'repeat',
  schema: 'repeat',
  schemaProgress: 'repeat',
  get: 'repeat',
  exportPage: 'repeat',
  search: 'repeat',
  embedAhead: 'once',
  join: 'repeat',
  refer: 'repeat',
  cascade: 'repeat',
  abandon: 'repeat',
  messages: 'repeat',
  recentMessages: 'repeat',
  wholeTurns: 'repeat',
  // Writes with the same result, however often they are repeated.
  reseal: 'repeat',
  rename: 'repeat',
  reindex: 'repeat',
  reconcileVectors: 'repeat',
  destroy: 'repeat',
  patch: 'repeat',
  keepHistory: 'repeat',
  removeConversation: 'repeat',
  appendTurn: 'repeat',
  expireMessages: 'repeat',
  loggedEvents: 'repeat',
  forgetEvents: 'repeat',
  flushEvents: 'repeat',
  eventStatus: 'repeat',
  // A second call would meet the result of the first one, and return an error, another id or other counts.
  create: 'once',
  alter: 'once',
  write: 'once',
  remove: 'once',
  updateWhere: 'once',
  removeWhere: 'once',
  truncate: 'once',
  importLines: 'once',
  recordEvents: 'once',
} as const satisfies Repetitions<Record<string, unknown>>

/** A handle on the object of another collection. Makes no call. */
export const peer = (env: Cloudflare.Env, objectId: string): Peer =>
  objectCalls(objectStubs<Peer>(env.COLLECTION as DurableObjectNamespace, env, objectId), COLLECTION_CALLS)
