/**
 * What is read for a question before it reaches its conversation, so that its first token waits for fewer calls. The route makes one
 * `Prefetch` for each request and hands it on. It reads three things, each as soon as it is known what to read:
 *
 * - The registry. A question needs an assistant, its model, the model's history and some collections, and each of these names the
 *   next. One query finds all of them and puts them into their caches, where the code that needs them finds them.
 * - The end of the history. The conversation's object knows its history, so the Worker asks it to look back as soon as the key is
 *   known. The question comes a call later, and finds the messages there. Each reading is for one question, which names it, and
 *   begins after that question has arrived at Parley. So it has every change of the history that was acknowledged before. No later
 *   question may use it, so nobody has to take anything back.
 * - The vectors of a first question. The collection's object begins the call to the embedder beside the call to the conversation,
 *   and the search that the conversation sends waits for it (search/run/embedded-ahead.ts).
 *
 * It changes nothing, and nothing depends on it: what could not be read is read again where it is needed.
 */
import { waitUntil } from 'cloudflare:workers'
import { nearby } from '../db/client'
import {
  isAssistantFresh,
  isModelHeld,
  type Named,
  readingAssistants,
  readingModels,
  readPipelineRows,
  readRegistry,
} from '../db/registry'
import type { ResourceRow } from '../db/resources'
import { dayOf, isLimited, readingSpent, spentOnLimited } from '../db/turns'
import { logFailure, reasonOf } from '../errors'
import { promptText, textOf } from '../lib/parts'
import { readStoredObject } from '../lib/stored-json'
import { isNameHeld, readingNames } from '../registry/collections'
import { historyStore, ownObject } from '../registry/engines'
import type { Origin } from '../search/fault-log'
import type { RecentMessages } from '../search/types'
import { byteLength } from '../turn/prompt'
import type { Asker, AskRequest } from '../turn/request'
import { asked } from '../turn/retrieve'
import { mayLeanOn } from '../turn/run'
import { isSealed } from './conversation-id'
import { conversationObject, type Seen } from './conversation-object'
import type { ConversationState } from './conversation-state'
import { deletedTurns } from './messages'

export type { Named }

/** How much text is read: the model is not known yet. Most models take less (`max_bytes`). */
export const MOST_BYTES = 65_536

/** A question that comes later than this reads for itself, in milliseconds. D1 may have taken long. */
const FRESH_MS = 2_000

/** The searches of a turn that run at once. */
const MOST_EMBEDDED = 4

/** A conversation that a request names, if any. */
export interface Looking {
  conversationId: string | undefined
  /** absent: the caller is told nothing */
  asker?: Asker
  /** the turn that the question continues from, if it names one */
  after?: number | undefined
  /** true for an id that this server made from a name or gave out with a seal */
  isOurs?: boolean
}

export class Prefetch {
  readonly #env: Cloudflare.Env
  readonly #requestId: string
  readonly #addressed: (() => Promise<unknown> | undefined) | undefined
  #begun: Promise<unknown> | undefined
  #finding: Promise<unknown> | undefined
  #looked: { conversationId: string; reading: string; seen: Promise<Seen | undefined> } | undefined
  #distrusted = false

  /** @param addressed begins to read what the request's address names; must not reject */
  constructor(
    env: Cloudflare.Env,
    { requestId = '' }: { requestId?: string },
    addressed?: () => Promise<unknown> | undefined,
  ) {
    this.#env = env
    this.#requestId = requestId
    this.#addressed = addressed
  }

  /** Begins to read what the address names. Call it once the key is being looked up. */
  begin = (): void => {
    this.#begun ??= this.#addressed?.()
  }

  /** Settles when what the address names was read; never rejects. */
  get begun(): Promise<unknown> {
    return Promise.resolve(this.#begun)
  }

  /**
   * Reads rows of the registry that are not in the caches. Never rejects.
   * @param meanwhile called if the request has to wait
   */
  async registry(named: Named, meanwhile: () => void = () => {}): Promise<void> {
    if (isKnown(named)) return
    meanwhile()
    // What the address names is mostly the same.
    await this.#begun
    if (this.#begun && isKnown(named)) return
    await readRegistryRows(this.#env, named)
  }

  /**
   * Has the conversation that a request names look back. Call it for a request whose key may ask: the turn checks who asks. A
   * conversation looks back once for a request.
   * @returns never rejects; undefined if nothing could be learnt
   */
  look(looking: Looking): Promise<Seen | undefined> {
    const { conversationId } = looking
    if (!conversationId || this.#distrusted) return Promise.resolve(undefined)
    if (this.#looked?.conversationId === conversationId) return this.#looked.seen
    const reading = crypto.randomUUID()
    const requestId = this.#requestId
    const seen = lookBack(this.#env, conversationId, looking, { reading, requestId }).catch((error) => {
      // An object of the version before does not have the method.
      if (!(error instanceof TypeError))
        logFailure('a history was not read ahead', error, { requestId, conversation: conversationId })
      return undefined
    })
    waitUntil(seen)
    this.#looked = { conversationId, reading, seen }
    return seen
  }

  /**
   * The same for a conversation that has to be found out first.
   * @returns settles when it has been asked; never rejects
   */
  find(finding: Promise<Looking | undefined>): Promise<unknown> {
    this.#finding = finding.then(
      (looking) => looking && this.look(looking),
      () => {},
    )
    return this.#finding
  }

  /** What a conversation said when it was told to look back. @returns undefined if it was not, or said nothing */
  async seen(conversationId: string): Promise<Seen | undefined> {
    await this.#finding
    return this.#looked?.conversationId === conversationId ? this.#looked.seen : undefined
  }

  /** Forgets what a conversation said, which turned out wrong, and asks none again. */
  distrust(): void {
    this.#looked = undefined
    this.#distrusted = true
  }

  /** The name of the reading of a history that began for this request's question. */
  get reading(): string | undefined {
    return this.#looked?.reading
  }

  /**
   * Begins to embed a first question.
   * @param request one that was admitted: its key, its budget and its rate were checked
   * @param isNew whether its conversation surely begins now, although it has a name
   */
  embed(request: AskRequest, isNew: boolean): void {
    const continues = request.continues && !isNew
    // A follow-up looks back and is rewritten while its own wording is embedded, so it need not begin sooner.
    if ((continues && !request.named) || mayLeanOn({ ...request, continues })) return
    const question = textOf(request.question)
    for (const { place, params, isEmbedded, error } of request.searches.slice(0, MOST_EMBEDDED)) {
      if (!isEmbedded || !place || error) continue
      const embedding = ownObject(this.#env, place).embedAhead(asked(params, question, undefined))
      waitUntil(
        embedding.catch((error) => {
          // An object of the version before does not have the method, and embeds with the search.
          if (!(error instanceof TypeError))
            logFailure('a question was not embedded ahead', error, { requestId: request.requestId })
        }),
      )
    }
  }
}

const isKnown = ({ assistant, model, collections = [] }: Named): boolean =>
  (assistant === undefined || isAssistantFresh(assistant)) &&
  (model === undefined || isModelHeld(model)) &&
  collections.every(isNameHeld)

/**
 * Reads rows of the registry into their caches, whatever is there. Never rejects.
 * @returns the rows of a pipeline; undefined if they could not be read
 */
export const readRegistryRows = (env: Cloudflare.Env, named: Named): Promise<ResourceRow[] | undefined> =>
  readRows(env, named).catch((error) => {
    console.error('the registry could not be read ahead', reasonOf(error))
    return undefined
  })

async function readRows(env: Cloudflare.Env, named: Named): Promise<ResourceRow[]> {
  const keep = { assistant: readingAssistants(), model: readingModels(), name: readingNames() }
  const spent = readingSpent()
  const day = dayOf(Date.now())
  const { assistant, pipeline } = named
  // A replica may not know yet that an assistant is gone, what a pipeline is now, or what was spent a moment ago.
  const [rows, sums, resources] = await Promise.all([
    readRegistry(assistant === undefined && !pipeline ? nearby(env) : env.DB, named),
    spentOnLimited(env.DB, day, named),
    pipeline ? readPipelineRows(env.DB, pipeline) : [],
  ])
  if (rows.assistant) keep.assistant(rows.assistant.name, rows.assistant)
  for (const row of rows.models) {
    keep.model(row.id, row)
    if (!isLimited(readStoredObject(row.config))) continue
    spent.onModel(
      day,
      row.id,
      sums.find(({ modelId }) => modelId === row.id),
    )
  }
  for (const { asked, ...row } of rows.collections) keep.name(asked, row)
  return resources
}

async function lookBack(
  env: Cloudflare.Env,
  conversationId: string,
  { asker, isOurs, after }: Looking,
  { reading, requestId }: { reading: string; requestId: string },
): Promise<Seen | undefined> {
  // To call an object creates it, as a file on disk where Parley runs locally. One that was only called stores nothing.
  if (!isOurs && !(await isSealed(env, conversationId))) return undefined
  // An object of the version before returns nothing.
  return (
    (await conversationObject(env, conversationId).lookBack(reading, asker, after, { requestId })) ??
    undefined
  )
}

/** What an asker may know of a conversation that has begun. */
export function seenBy(asker: Asker | undefined, state: ConversationState | undefined): Seen {
  const historyId = state?.histories.at(-1)
  const isOpen = asker && state && !state.closed && state.owner !== undefined && state.mayContinue(asker)
  if (!isOpen || historyId === undefined) return {}
  return { historyId, ...(state.log.unused && { isNew: true }) }
}

interface Begun {
  reading: string
  historyId: string
  state: ConversationState
  /** the latest turn when it began */
  turn: number | undefined
  /** the turn that the question continues from */
  after: number | undefined
  /** milliseconds since 1970 */
  at: number
  messages: Promise<RecentMessages | undefined>
  /** turns whose messages were deleted, from the one that the question continues from; undefined: not known */
  deleted: Promise<number[] | undefined> | undefined
}

/** The latest reading that began in a conversation's object. A question takes it once. */
export class PrefetchedHistory {
  readonly #env: Cloudflare.Env
  readonly #id: string
  #begun: Begun | undefined

  constructor(env: Cloudflare.Env, conversationId: string) {
    this.#env = env
    this.#id = conversationId
  }

  /** Begins to read. @param given.after the turn that the question continues from */
  begin(
    state: ConversationState,
    { reading, after, origin }: { reading: string; after?: number | undefined; origin?: Origin | undefined },
  ): void {
    const historyId = state.histories.at(-1)
    if (state.closed || historyId === undefined || !state.outbox.empty) return
    const messages = historyStore(this.#env, historyId)
      .recentMessages(this.#id, MOST_BYTES, undefined, origin)
      .catch(() => undefined)
    const deleted =
      after === undefined
        ? undefined
        : deletedTurns(this.#env, state, this.#id, after, origin).catch(() => undefined)
    const turn = state.log.latest()
    this.#begun = { reading, historyId, state, turn, after, at: Date.now(), messages, deleted }
  }

  /** Turns from this one on whose messages were deleted, if that was looked up for the question and still holds. */
  async deletedFrom(
    state: ConversationState,
    after: number,
    { prefetched }: AskRequest,
  ): Promise<number[] | undefined> {
    const begun = this.#begun
    if (!begun || begun.reading !== prefetched || begun.after !== after) return undefined
    if (!isFresh(begun) || !holds(begun, state)) return undefined
    const deleted = await begun.deleted
    return holds(begun, state) ? deleted : undefined
  }

  /**
   * Whether what was read for a question shows that no message was left then. The Worker asks the history once more, so it may
   * be out of date. Never rejects.
   */
  async foundNothing(reading: string | undefined): Promise<boolean> {
    const begun = this.#begun
    if (!begun || begun.reading !== reading) return false
    return (await begun.messages)?.messages.length === 0
  }

  /**
   * The messages for a turn that begins now.
   * @returns undefined if the turn has to read: nothing was read for it, or the conversation went on since
   */
  async take(
    state: ConversationState | undefined,
    { prefetched, historyId, model }: AskRequest,
  ): Promise<RecentMessages | undefined> {
    const begun = this.#begun
    if (!begun || begun.reading !== prefetched) return undefined
    this.#begun = undefined
    if (begun.historyId !== historyId || !isFresh(begun) || !holds(begun, state)) return undefined
    const messages = await begun.messages
    return messages && holds(begun, state) ? lastOf(messages, model.max_bytes) : undefined
  }
}

const isFresh = ({ at }: Begun): boolean => Date.now() - at <= FRESH_MS

/** Whether the conversation is as it was when a reading began. */
const holds = ({ state, turn }: Begun, now: ConversationState | undefined): boolean =>
  now === state && !state.closed && state.outbox.empty && state.log.latest() === turn

/** What a reading of fewer bytes would have returned (history/turns.ts). @returns undefined if it lacks some */
export function lastOf({ messages, complete }: RecentMessages, bytes: number): RecentMessages | undefined {
  let total = 0
  for (const [index, { content }] of [...messages.entries()].reverse()) {
    if (total > bytes) return { messages: messages.slice(index + 1), complete: false }
    total += byteLength(promptText(content))
  }
  return complete || total > bytes ? { messages, complete } : undefined
}
