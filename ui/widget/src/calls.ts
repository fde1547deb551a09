/** What an answer does besides reading: its calls of tools, and the question for the visitor's leave. */
import { h, icon } from './dom'
import type { Turn } from './turn'
import type { CalledTool } from './wire'
import type { Words } from './words'

/** Functions of the page that an answer may call, by the names of its assistant's tools. What one returns is told to the model. */
export type PageTools = Record<string, (given: Record<string, unknown>) => unknown>

/** Calls that wait for the visitor, or for the page. */
export const waitingIn = ({ calls }: Pick<Turn, 'calls'>): CalledTool[] =>
  calls.filter(({ awaits }) => awaits)

/** UTF-16 units of a value that are shown. */
const LONGEST = 200

/** @returns none for what is no object of JSON */
export function argumentsOf({ arguments: given }: Pick<CalledTool, 'arguments'>): Record<string, unknown> {
  try {
    const value = JSON.parse(given)
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}

export class CallsView {
  readonly element = h('div', { class: 'calls', part: 'calls', hidden: true })
  readonly #turn: Turn
  readonly #words: Words
  readonly #decide: (isAllowed: boolean) => void
  #shown = '[]'

  constructor(turn: Turn, words: Words, decide: (isAllowed: boolean) => void) {
    this.#turn = turn
    this.#words = words
    this.#decide = decide
  }

  /** @param isLast whether the visitor can still decide */
  update(isLast: boolean): void {
    const { calls, state } = this.#turn
    const shown = JSON.stringify([calls, state, isLast])
    if (shown === this.#shown) return
    this.#shown = shown
    const asked = calls.filter(({ awaits }) => awaits === 'leave')
    const rows = calls.filter((call) => !asked.includes(call)).map((call) => this.#row(call))
    this.element.hidden = calls.length === 0
    this.element.replaceChildren(...rows)
    if (asked.length > 0 && state === 'done') this.element.append(this.#request(asked, isLast))
  }

  /** A call that runs or has run. */
  #row(call: CalledTool): HTMLElement {
    const { name, title = name, result, failed } = call
    const mark = result === undefined ? 'clock' : failed ? 'close' : 'check'
    const said =
      result === undefined ? this.#words.calling : failed ? this.#words.notDone : this.#words.called
    return h(
      'p',
      { class: 'call' },
      icon(mark),
      h('span', { dir: 'auto' }, title),
      h('span', { class: 'hidden' }, said),
    )
  }

  #request(calls: readonly CalledTool[], isLast: boolean): HTMLElement {
    const { leave, allow, refuse } = this.#words
    const button = (isAllowed: boolean) => {
      const kind = isAllowed ? 'primary' : 'quiet'
      const onclick = () => this.#decide(isAllowed)
      return h('button', { type: 'button', class: kind, onclick }, isAllowed ? allow : refuse)
    }
    const asked = calls.map((call) => {
      const { name, title = name } = call
      const values = Object.entries(argumentsOf(call)).flatMap(([key, value]) => [
        h('dt', {}, key),
        h(
          'dd',
          { dir: 'auto' },
          (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, LONGEST),
        ),
      ])
      return h('div', {}, h('p', { class: 'call-title', dir: 'auto' }, title), h('dl', {}, ...values))
    })
    return h(
      'div',
      { class: 'leave', part: 'leave', role: 'group', 'aria-label': leave },
      h('p', {}, leave),
      ...asked,
      isLast && h('div', { class: 'leave-buttons' }, button(false), button(true)),
    )
  }
}
