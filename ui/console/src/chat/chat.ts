/** The conversation of this tab. It lives beside the pages, so that an answer goes on while another page is looked at. */
import { effect, type Signal, signal } from '@preact/signals'
import { Api, ApiError } from '../../../widget/src/api'
import { type Kept, Session, type Turn } from '../../../widget/src/session'
import { sourcesOf } from '../../../widget/src/sources'
import { visitorSecret } from '../../../widget/src/storage'
import type { TurnsView } from '../../../widget/src/turns-view'
import type { Asking, Front, StoredTurn, TurnEvent } from '../../../widget/src/wire'
import { conversationAt, go, NEW, place, toConversation } from '../address'
import { key } from '../api'
import { askedWith, type Choices, goesOnWith, loadChoices, type Own, type Stored } from './choices'
import { type Insight, learn } from './insight'
import { type ChatSettings, choose, chosenFor, requestOf, settings } from './settings'
import { citedBy, type Retrieval } from './titles'
import type { Timings, TracedTurn, Usage } from './wire'
import { inWords, STUCK } from './words'

/** What is stored of a turn besides what the chat shows. */
interface TurnRecord {
  usage: Usage
  timings: Timings
}

class ChatApi extends Api {
  readonly records = new Map<number, TurnRecord>()
  cited = new Map<number, Retrieval>()
  /** with what the open conversation is asked; undefined while that is not known, and where none is open */
  readonly own = signal<Own | undefined>(undefined)
  #finding: { id: string; own: Promise<Own> } | undefined

  override async ask(asking: Asking, name: string, signal: AbortSignal): Promise<Response> {
    const id = asking.conversation_id
    if (id === undefined) this.own.value = { settings: settings.peek() }
    const own = id === undefined ? this.own.peek() : await this.ownOf(id)
    const { path, body } = requestOf(own?.settings ?? settings.peek())
    try {
      return await this.call(path, {
        method: 'POST',
        headers: {
          accept: 'text/event-stream',
          'content-type': 'application/json',
          'idempotency-key': name,
        },
        body: JSON.stringify({ ...asking, ...body }),
        signal,
      })
    } catch (error) {
      if (id === undefined || !(error instanceof ApiError) || error.code !== 'unknown_conversation')
        throw error
      // It has expired only if it cannot be read either.
      await this.call(pathOf(id, '?limit=1'), { signal })
      throw new ApiError(error.status, STUCK)
    }
  }

  /** With what a conversation goes on: as it was asked last, or as somebody has chosen for it since. */
  async ownOf(id: string): Promise<Own> {
    const known = this.own.peek()
    if (known) return known
    if (this.#finding?.id !== id) this.#finding = { id, own: this.#find(id) }
    const finding = this.#finding
    try {
      const own = await finding.own
      if (this.#finding === finding) this.own.value ??= own
      return own
    } catch (error) {
      if (this.#finding === finding) this.#finding = undefined
      throw error
    }
  }

  async #find(id: string): Promise<Own> {
    const found = this.call(pathOf(id, '?limit=20')).then((response): Promise<Stored> => response.json())
    const [stored, choices] = await Promise.all([found, loadChoices()])
    const last = stored.turns.at(-1)?.turn
    const traced = last === undefined ? [] : await this.#trace(id, last)
    const tab = settings.peek()
    const own = askedWith(stored, traced.at(-1)?.trace, choices, tab)
    return id === chosenFor && goesOnWith(own, tab, choices) ? { ...own, settings: tab } : own
  }

  /** @returns nothing where the key may not read traces, or the trace is gone */
  async #trace(id: string, turn: number): Promise<TracedTurn[]> {
    try {
      return (await (await this.call(pathOf(id, `/trace?turn=${turn}`))).json()).turns
    } catch (error) {
      if (error instanceof ApiError && error.status < 500) return []
      throw error
    }
  }

  forget(): void {
    this.records.clear()
    this.cited.clear()
    this.own.value = undefined
    this.#finding = undefined
  }

  /** No turn is finished while the first one of a conversation runs. */
  override async turns(id: string, version?: number): Promise<StoredTurn[]> {
    const turns = await super.turns(id, version).catch((error) => {
      if (error instanceof ApiError && error.status === 404) return []
      throw error
    })
    for (const turn of turns as (StoredTurn & TurnRecord)[]) this.records.set(turn.turn, turn)
    this.cited = await citedBy(turns)
    return turns
  }

  protected override async call(path: string, init?: RequestInit): Promise<Response> {
    try {
      return await super.call(path, init)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      throw new ApiError(error.status, inWords(error), error.retryAfter, error.code)
    }
  }
}

const pathOf = (id: string, more: string): string => `/conversations/${encodeURIComponent(id)}${more}`

/** The address names the conversation, so that a reload, "Back" and a link show it. */
class InAddress implements Kept {
  id = idInAddress()
  answered = this.id !== undefined

  keep(id: string | undefined, answered: boolean): void {
    const isNew = id !== this.id
    this.id = id
    this.answered = answered
    if (!isNew || place.peek().page !== 'chat' || id === idInAddress()) return
    go(id === undefined ? NEW : toConversation(id))
  }
}

const idInAddress = (): string | undefined => conversationAt(place.peek())

export class Chat {
  readonly turns = signal<readonly Turn[]>([])
  readonly busy = signal(false)
  /** draws turns, while a page shows them */
  view: TurnsView | undefined
  /** why a conversation is not shown */
  readonly lost = signal<string | undefined>(undefined)
  /** counts turns that have ended: what lists conversations looks again */
  readonly ended = signal(0)
  readonly session: Session
  readonly #api: ChatApi
  readonly #insights = new WeakMap<Turn, Signal<Insight>>()
  readonly #began = new WeakMap<Turn, number>()
  readonly #retrieved = new WeakMap<Turn, Retrieval>()
  readonly #end: () => void

  constructor() {
    const at = { server: '', assistant: '', key: key.peek(), visitor: visitorSecret() }
    this.#api = new ChatApi(at)
    this.session = new Session(
      at,
      {
        changed: (turn) => this.#changed(turn),
        ended: () => {
          this.#changed()
          this.ended.value += 1
          this.#findOwn()
        },
        event: (turn, event) => this.#learn(turn, event),
        lost: ({ message }) => {
          this.lost.value = message
          this.#changed()
        },
      },
      { api: this.#api, kept: new InAddress() },
    )
    let first = true
    this.#end = effect(() => {
      const { page, rest } = place.value
      const [id] = rest
      if (page !== 'chat' || (id === this.session.id && !first)) return
      first = false
      this.lost.value = undefined
      this.#api.forget()
      if (id === undefined) this.session.leave()
      else this.session.open(id, true)
      this.#findOwn()
    })
  }

  /** Finds out with what the open conversation is asked. What goes wrong is told when something is asked. */
  #findOwn(): void {
    const { id } = this.session
    if (id !== undefined) this.#api.ownOf(id).catch(() => {})
  }

  /** With what the open conversation is asked; undefined while that is not known, and where none is open. */
  get own(): Signal<Own | undefined> {
    return this.#api.own
  }

  /** Whether other settings begin a new conversation, because the open one cannot go on with them. */
  beginsWith(next: ChatSettings, choices: Choices): boolean {
    const own = this.own.peek()
    return this.#goesOn && own !== undefined && !goesOnWith(own, next, choices)
  }

  /** Takes other settings, for the open conversation too. Where it cannot go on with them, a new one begins. */
  choose(next: ChatSettings, choices: Choices): void {
    const begins = this.beginsWith(next, choices)
    choose(next)
    if (begins) go(NEW)
    else if (this.#goesOn) this.own.value = { ...this.own.peek(), settings: next }
    else this.own.value = undefined
  }

  /** Whether there is an answer to go on from, or one is on its way. */
  get #goesOn(): boolean {
    return this.turns.peek().some(({ state }) => state !== 'failed' && state !== 'stopped')
  }

  get id(): string | undefined {
    return this.session.id
  }

  /** Where a finished answer is kept: its conversation and its number. */
  addressOf({ state, number }: Turn): string | undefined {
    return state === 'done' && number !== undefined && this.id !== undefined
      ? `${this.id}/${number}`
      : undefined
  }

  ask(question: string, replaces?: Turn): void {
    if (question.trim() === '' || this.busy.peek()) return
    if (this.lost.peek() !== undefined) {
      this.lost.value = undefined
      this.session.leave()
    }
    this.session.ask(question.trim(), replaces)
  }

  stop(): void {
    this.session.stop()
  }

  close(): void {
    this.#end()
    this.session.close()
  }

  insight(turn: Turn): Signal<Insight> {
    const known = this.#insights.get(turn)
    if (known) return known
    const stored = turn.number === undefined ? undefined : this.#api.records.get(turn.number)
    const made = signal<Insight>(
      stored && turn.state === 'done' ? { usage: stored.usage, timings: stored.timings } : {},
    )
    this.#insights.set(turn, made)
    this.#began.set(turn, performance.now())
    return made
  }

  /** milliseconds since a turn was first seen */
  age(turn: Turn): number {
    return performance.now() - (this.#began.get(turn) ?? performance.now())
  }

  /** By which fields sources are called. Those that are shown already are called anew. */
  setFront(front: Partial<Front>): void {
    this.session.front = front
    for (const turn of this.session.turns) this.#nameSources(turn)
    this.#changed()
  }

  #nameSources(turn: Turn): void {
    const retrieved = this.#retrieved.get(turn)
    if (retrieved) turn.sources = sourcesOf(retrieved, this.session.front)
  }

  #learn(turn: Turn, event: TurnEvent): void {
    if (event.type === 'retrieval') this.#retrieved.set(turn, event.data)
    const insight = this.insight(turn)
    insight.value = learn(insight.peek(), event, this.age(turn))
  }

  #changed(turn?: Turn): void {
    if (turn) {
      this.insight(turn)
      if (turn.error) turn.error.message = inWords(turn.error)
      this.view?.changed(turn)
    }
    // The session keeps one array and changes it.
    const { turns, busy } = this.session ?? { turns: [], busy: false }
    if (!turn || busy !== this.busy.peek() || turns.length !== this.turns.peek().length) {
      for (const each of turns) {
        const cited = each.number === undefined ? undefined : this.#api.cited.get(each.number)
        if (!cited || this.#retrieved.has(each) || each.state !== 'done') continue
        this.#retrieved.set(each, cited)
        this.#nameSources(each)
      }
      this.turns.value = [...turns]
      this.busy.value = busy
      this.view?.updateAll()
    }
  }
}

const keys = new WeakMap<Turn, number>()
let made = 0

/** A turn's own name: its number is not known at first, and another turn may take it. */
export function turnKey(turn: Turn): number {
  const known = keys.get(turn)
  if (known !== undefined) return known
  made += 1
  keys.set(turn, made)
  return made
}

let current: { chat: Chat; key: string } | undefined

/** The chat of the key that is in use. */
export function chat(): Chat {
  if (current?.key !== key.peek()) {
    current?.chat.close()
    current = { chat: new Chat(), key: key.peek() }
  }
  return current.chat
}
