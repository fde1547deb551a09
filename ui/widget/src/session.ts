/** A conversation as a page has it: its turns, the one that is being written, and what to do when the network goes. */
import { Api, ApiError, type Place } from './api'
import { argumentsOf, type PageTools, waitingIn } from './calls'
import { NetworkError, readEvents } from './events'
import { sourcesOf } from './sources'
import { OpenConversation, randomId } from './storage'
import { blank, ownOf, type Turn, type TurnState, turnOf } from './turn'
import type { Asking, CalledTool, Feedback, Front, TurnEvent } from './wire'

export type { Turn, TurnState } from './turn'

/** What the session tells of itself. */
export interface Listener {
  /** a turn has changed; without one, there are others */
  changed(turn?: Turn): void
  /** a turn has ended, while this page looked on */
  ended(turn: Turn): void
  /** an event of a turn has come, before the turn shows it */
  event?(turn: Turn, event: TurnEvent): void
  /** a conversation could not be opened */
  lost?(error: ApiError): void
}

/** Where the id of the open conversation is kept. */
export interface Kept {
  readonly id: string | undefined
  /** whether a question of it was answered */
  readonly answered: boolean
  keep(id: string | undefined, answered: boolean): void
}

/** What a page does in another way than the widget. */
export interface SessionParts {
  api?: Api
  kept?: Kept
}

/** A number that no event has: the events after a finished turn. */
const PAST_THE_END = 999_999_999
/** turns whose log the server may have */
const LOGGED_TURNS = 15
const MOST_TRIES = 8
const FIRST_WAIT_MS = 500
const LONGEST_WAIT_MS = 8_000
/** How long to wait for a person's reply before it is looked for, at first and at most. */
const FIRST_LOOK_MS = 4_000
const LONGEST_LOOK_MS = 300_000

export class Session {
  readonly api: Api
  readonly #open: Kept
  readonly #listener: Listener
  readonly #channel: BroadcastChannel | undefined
  #abort = new AbortController()
  #running: Turn | undefined
  #stopAsked = false
  #look: ReturnType<typeof setTimeout> | undefined
  /** whether the conversation has an answer: until then the server has nothing to go on from */
  #answered = false
  /** turns whose sources are known as they were found */
  readonly #sourced = new Set<number>()
  turns: Turn[] = []
  /** settles when the turns of the conversation are there */
  ready: Promise<void> = Promise.resolve()
  front: Partial<Front> = {}

  constructor(place: Place, listener: Listener, { api, kept }: SessionParts = {}) {
    this.api = api ?? new Api(place)
    this.#open = kept ?? new OpenConversation(place.server, place.assistant)
    this.#listener = listener
    this.id = this.#open.id
    this.#answered = this.#open.answered
    // A conversation that the address names is this tab's own.
    if (!kept && typeof BroadcastChannel === 'function') {
      this.#channel = new BroadcastChannel(`parley ${place.server} ${place.assistant}`)
      this.#channel.onmessage = ({ data }) => this.#heard(data)
    }
  }

  /** the conversation's; undefined before its first question */
  id: string | undefined

  get busy(): boolean {
    return this.#running !== undefined
  }

  /**
   * Asks a question.
   * @param replaces the turn that gives way, with whatever came after it
   * @param files what comes with it; those of the turn that gives way come again
   * @param decisions about calls for which the turn that gives way waits: it goes on in another
   */
  async ask(
    question: string,
    replaces?: Turn,
    files = replaces?.files ?? [],
    decisions?: Asking['decisions'],
  ): Promise<void> {
    // The conversation goes on from its latest version, wherever its reader is.
    if (!this.busy && this.turns.some(({ isPast }) => isPast)) await this.open()
    if (this.busy) return
    this.#stopAsked = false
    this.#detach()
    // A turn that failed or was stopped is not kept: what it was to replace is still there.
    const number = replaces?.state === 'done' ? replaces.number : replaces?.replaces
    const turn: Turn = { ...blank(), question, files, ...(number !== undefined && { replaces: number }) }
    const waits = replaces && waitingIn(replaces).length > 0
    const versions = replaces?.versions ?? (number === undefined || waits ? [] : [number])
    if (versions.length > 0) turn.versions = versions
    if (decisions && replaces) {
      const { answer, calls, sources } = replaces
      Object.assign(turn, { answer, sources, calls: calls.map(({ awaits: _, ...call }) => call) })
    }
    const at = replaces ? this.turns.indexOf(replaces) : -1
    if (at >= 0) this.turns.length = at
    else this.#dropUnkept()
    this.turns.push(turn)
    this.#running = turn
    this.#listener.changed()
    const asking: Asking = {
      ...(decisions ? { decisions } : { question }),
      ...(this.#answered && { conversation_id: this.id }),
      ...(this.#answered && number !== undefined && { replaces: number }),
      ...(files.length > 0 && { files }),
    }
    const name = randomId()
    const { signal } = this.#abort
    await this.#attend(turn, signal, async () => {
      const response = await this.#persist(turn, signal, () => this.api.ask(asking, name, signal))
      const id = response.headers.get('x-parley-conversation-id')
      if (id) this.#remember(id)
      this.#channel?.postMessage({ asked: this.id, answered: this.#answered })
      if (this.#stopAsked) this.stop()
      return response
    })
  }

  /** Goes on with a turn whose calls wait. @param isAllowed whether the visitor gives leave @param tools those of the page */
  async decide(turn: Turn, isAllowed: boolean, tools: PageTools = {}): Promise<void> {
    const decided = waitingIn(turn).map(async (call) => {
      const decision = call.awaits === 'leave' ? isAllowed : await runHere(call, tools)
      return [call.id, decision] as const
    })
    await this.ask(turn.question, turn, [], Object.fromEntries(await Promise.all(decided)))
  }

  /** Ends the running turn, for everybody who reads it. */
  async stop(): Promise<void> {
    const turn = this.#running
    if (!turn) return
    this.#stopAsked = true
    if (this.id === undefined) return
    await this.api.stop(this.id).catch(() => {})
  }

  /** Shows another version of a turn, with what followed it then. @throws ApiError, NetworkError */
  async show(turn: Turn, version: number): Promise<void> {
    const { id } = this
    if (id === undefined || this.busy) return
    const latest = await this.api.turns(id)
    const shown = latest.some(({ turn: number }) => number === version)
      ? latest
      : await this.api.turns(id, version)
    if (id !== this.id || this.busy) return
    const current = new Set(latest.map(({ turn: number }) => number))
    const kept = this.turns.slice(0, Math.max(0, this.turns.indexOf(turn)))
    this.turns = shown.map((stored) => {
      const known = kept.find(({ number }) => number === stored.turn)
      const isPast = !current.has(stored.turn)
      return known ?? { ...turnOf(stored, this.front), ...(isPast && { isPast }) }
    })
    this.#listener.changed()
  }

  /** Stores what the visitor says of an answer; undefined deletes it. @throws ApiError, NetworkError */
  async rate(turn: Turn, feedback: Feedback | undefined): Promise<void> {
    if (this.id === undefined || turn.number === undefined) return
    await this.api.rate(this.id, turn.number, feedback)
    turn.feedback = feedback
    this.#listener.changed(turn)
  }

  /** Hands the conversation over to people. @throws ApiError, NetworkError */
  async handOver(contact: string, message: string): Promise<void> {
    if (this.id === undefined) return
    await this.api.handOver(this.id, contact, message)
    this.#awaitPeople(this.id)
  }

  /** Looks for replies of people at growing gaps, as long as the conversation is open on a page that is seen. */
  #awaitPeople(id: string, wait = FIRST_LOOK_MS): void {
    clearTimeout(this.#look)
    this.#look = setTimeout(async () => {
      if (id !== this.id) return
      const before = this.turns.length
      if (!this.busy && document.visibilityState === 'visible') {
        const after = `${this.turns.at(-1)?.number ?? 0}.${PAST_THE_END}`
        const { signal } = this.#abort
        await this.#catchUp(id, signal, () => this.api.follow(id, after, signal)).catch(() => {})
      }
      const next = Math.min(LONGEST_LOOK_MS, wait * 1.5)
      this.#awaitPeople(id, this.turns.length > before ? FIRST_LOOK_MS : next)
    }, wait)
  }

  /** Answers declined in a row, at the end of the conversation. */
  get declined(): number {
    const answered = this.turns.filter(({ state }) => state === 'done')
    return answered.length - 1 - answered.findLastIndex(({ declined }) => !declined)
  }

  /** Leaves the conversation: what is running goes on without this page. */
  leave(): void {
    this.#detach()
    this.#remember(undefined)
    this.turns = []
    this.#sourced.clear()
    this.#listener.changed()
  }

  /** Lets go of the network, when the widget leaves the page. */
  close(): void {
    clearTimeout(this.#look)
    this.#detach()
    this.#channel?.close()
  }

  #detach(): void {
    this.#abort.abort()
    this.#abort = new AbortController()
    this.#running = undefined
  }

  /** Opens a conversation, and follows what is being written in it. Does nothing where there is none. */
  async open(id = this.id, answered = id === this.id && this.#answered): Promise<void> {
    if (id === undefined) return
    if (id !== this.id) {
      this.turns = []
      this.#sourced.clear()
    }
    this.#detach()
    this.#remember(id, answered)
    const { signal } = this.#abort
    const { promise, resolve } = Promise.withResolvers<void>()
    this.ready = promise
    try {
      // The first turn of a conversation is known to its log alone while it is written.
      const kept = answered ? await this.#persist(undefined, signal, () => this.api.turns(id)) : []
      if (signal.aborted) return
      if (kept.length === 0) this.#remember(id, false)
      this.turns = kept.map((stored) => {
        const known = this.turns.find(({ number, state }) => number === stored.turn && state === 'done')
        const { versions } = stored
        return known
          ? Object.assign(known, { feedback: ownOf(stored), versions, isPast: false })
          : turnOf(stored, this.front)
      })
      this.#listener.changed()
      resolve()
      if (this.api.handedOver !== undefined) this.#awaitPeople(id)
      await this.#catchUp(id, signal)
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof ApiError && this.#listener.lost) this.#listener.lost(error)
      else if (error instanceof ApiError && [400, 404].includes(error.status)) this.leave()
      else if (!(error instanceof NetworkError)) throw error
      else if (this.#running) this.#finish(this.#running, 'failed', { status: 0, message: '' })
    } finally {
      resolve()
    }
  }

  /** Reads the log: the sources of finished turns, and what is being written. */
  async #catchUp(id: string, signal: AbortSignal, follow = () => this.#follow(id, signal)): Promise<void> {
    const response = await this.#persist(undefined, signal, follow)
    if (response.status === 204) return
    const kept = new Set(this.turns.map(({ number }) => number))
    const latest = this.turns.at(-1)?.number ?? 0
    let turn: Turn | undefined
    for await (const event of this.#events(id, response, signal, () => turn)) {
      if (event.turn <= latest) {
        const known = kept.has(event.turn) && this.turns.find(({ number }) => number === event.turn)
        if (known && event.type === 'retrieval') {
          this.#listener.event?.(known, event)
          known.sources = sourcesOf(event.data, this.front)
          this.#sourced.add(event.turn)
          this.#listener.changed(known)
        }
        continue
      }
      if (turn?.number !== event.turn) {
        this.#dropUnkept()
        turn = { ...blank(), number: event.turn }
        this.turns.push(turn)
        this.#running = turn
        this.#listener.changed()
      }
      if (turn) this.#apply(turn, event)
    }
  }

  /**
   * Reads the log from the first turn whose sources are not known, as far back as logs go. The server keeps them for an hour: older
   * turns have the sources that they cite.
   */
  async #follow(id: string, signal: AbortSignal): Promise<Response> {
    const last = this.turns.at(-1)?.number
    if (last === undefined) return this.api.follow(id, undefined, signal)
    const isUnknown = ({ number = 0, author }: Turn) =>
      number > last - LOGGED_TURNS && !this.#sourced.has(number) && author === undefined
    const unknown = this.turns.filter(isUnknown).map(({ number }) => `${number}.0`)
    // The later turns may still have theirs, and the first answer tells.
    for (const after of unknown.length > 1 ? [unknown[0]!, unknown.at(-1)!] : unknown) {
      try {
        return await this.api.follow(id, after, signal)
      } catch (error) {
        if (!(error instanceof ApiError && error.code === 'unknown_turn')) throw error
      }
    }
    return this.api.follow(id, `${last}.${PAST_THE_END}`, signal)
  }

  /** Reads a turn to its end, whatever comes between. */
  async #attend(turn: Turn, signal: AbortSignal, begin: () => Promise<Response>): Promise<void> {
    try {
      const response = await begin()
      for await (const event of this.#events(this.id ?? '', response, signal, () => turn)) {
        if (turn.number !== undefined && event.turn > turn.number) break
        this.#apply(turn, event)
        if (event.type === 'done' || event.type === 'error') return
      }
      throw new NetworkError('The answer was cut off.')
    } catch (error) {
      if (signal.aborted) return
      const { status = 0, message = '', code } = error as Partial<ApiError>
      if (!(error instanceof ApiError || error instanceof NetworkError)) console.error(error)
      this.#finish(turn, 'failed', { status, message: error instanceof ApiError ? message : '', code })
    }
  }

  /** The events of a response; where the connection breaks, those of the next ones. */
  async *#events(
    id: string,
    response: Response,
    signal: AbortSignal,
    running: () => Turn | undefined,
  ): AsyncGenerator<TurnEvent, void> {
    let last: TurnEvent | undefined
    let next: Response | undefined = response
    for (let tries = 0; tries < MOST_TRIES; tries += 1) {
      try {
        for await (const event of readEvents(next, signal)) {
          signal.throwIfAborted()
          tries = 0
          last = event
          yield event
        }
      } catch (error) {
        if (!(error instanceof NetworkError)) throw error
      }
      if (last?.type === 'done' || last?.type === 'error') return
      const turn = running()
      // Nothing came at all: the turn before it may have been the last one.
      const after: string = last ? `${last.turn}.${last.seq}` : `${(turn?.number ?? 1) - 1}.${PAST_THE_END}`
      next = await this.#persist(turn, signal, () => this.api.follow(id, after, signal))
      if (next.status === 204) return
    }
    throw new NetworkError('The connection broke.')
  }

  /** Tries again as long as the network is away. @throws what is not the network's doing */
  async #persist<T>(turn: Turn | undefined, signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      try {
        const result = await call()
        if (turn?.reconnecting) this.#note(turn, false)
        return result
      } catch (error) {
        signal.throwIfAborted()
        if (!(error instanceof NetworkError) || (tries >= MOST_TRIES && navigator.onLine)) throw error
        if (turn) this.#note(turn, true)
        await pause(Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (tries - 1)), signal)
      }
    }
  }

  #note(turn: Turn, reconnecting: boolean): void {
    turn.reconnecting = reconnecting
    this.#listener.changed(turn)
  }

  #apply(turn: Turn, event: TurnEvent): void {
    const { turn: number, type, data } = event
    turn.number = number
    this.#listener.event?.(turn, event)
    if (type === 'question') {
      turn.question = data.question
      if (data.conversation_id) this.#remember(data.conversation_id)
    } else if (type === 'retrieval') {
      turn.sources = sourcesOf(data, this.front)
      this.#sourced.add(number)
      if (turn.state === 'searching') turn.state = 'reading'
    } else if (type === 'delta') {
      turn.state = 'writing'
      turn.answer += data.text
    } else if (type === 'tool_call') turn.calls.push(data)
    else if (type === 'tool_result') {
      const { id, text: result, failed } = data
      turn.calls = turn.calls.map((call) => (call.id === id ? { ...call, result, failed } : call))
    } else if (type === 'resumed') {
      turn.answer = data.answer
      turn.calls = data.calls
    } else if (type === 'citation') turn.citations.push(data)
    else if (type === 'followups') turn.followups = data.questions
    else if (type === 'done') {
      turn.answer = data.answer
      turn.support = data.support ?? []
      turn.declined = data.declined === true
      if (data.author !== undefined) turn.author = data.author
      if (turn.versions) turn.versions = [...turn.versions, number]
      this.#remember(this.id, true)
      this.#finish(turn, 'done')
      return
    } else if (type === 'error') {
      const { status, message, code } = data
      this.#finish(turn, code === 'stopped' ? 'stopped' : 'failed', { status, message, code })
      return
    }
    this.#listener.changed(turn)
  }

  #finish(turn: Turn, state: TurnState, error?: Turn['error']): void {
    turn.state = state
    turn.reconnecting = false
    if (error) turn.error = error
    if (this.#running === turn) this.#running = undefined
    this.#listener.changed(turn)
    this.#listener.ended(turn)
  }

  /** A turn that failed or was stopped is not kept by the server, and gives way to the next one. */
  #dropUnkept(): void {
    this.turns = this.turns.filter(({ state }) => state === 'done')
  }

  #remember(id: string | undefined, answered = id === this.id && this.#answered): void {
    this.id = id
    this.#answered = answered
    this.#open.keep(id, answered)
  }

  /** Another tab has asked something: in the same conversation, or in the first one. */
  #heard({ asked, answered }: { asked?: string; answered?: boolean }): void {
    if (asked === undefined || this.busy) return
    if (this.id === asked || (this.id === undefined && this.turns.length === 0)) this.open(asked, answered)
  }
}

/** What a function of the page makes of a call. */
async function runHere(call: CalledTool, tools: PageTools): Promise<{ result: string; failed?: true }> {
  try {
    const run = tools[call.name]
    if (!run) return { result: `This page has no \`${call.name}\`.`, failed: true }
    const made = await run(argumentsOf(call))
    return { result: typeof made === 'string' ? made : (JSON.stringify(made) ?? '') }
  } catch (error) {
    return { result: String(error), failed: true }
  }
}

/** Waits, but no longer than until the network is back. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer)
      removeEventListener('online', end)
      signal.removeEventListener('abort', end)
      if (signal.aborted) reject(signal.reason)
      else resolve()
    }
    const timer = setTimeout(end, ms)
    addEventListener('online', end)
    signal.addEventListener('abort', end)
  })
}
