/** The turns of a conversation on the page: drawn once a frame, and followed to their end while they grow. */

import type { BlockOptions } from './blocks'
import type { Card } from './card'
import { h, icon } from './dom'
import type { Evidence } from './evidence'
import type { Frame } from './frame'
import type { Markdown } from './markdown'
import type { Session, Turn } from './session'
import type { Source } from './sources'
import { TurnView } from './turn-view'
import type { Feedback } from './wire'
import type { Words } from './words'

/** How near to its end, in pixels, a conversation is followed. */
const NEAR = 60
const COPIED_MS = 1_600

export interface ConversationViewOptions {
  frame: Frame
  words: Words
  /** what the field says before the first question */
  placeholder: string
  card: Card
  session(): Session | undefined
  ask(question: string, replaces?: Turn): void
  decide(turn: Turn, isAllowed: boolean): void
  /** fits the way to people to the conversation */
  standing(answered: boolean, declined: number): void
  cited(source: Source): void
  colour: BlockOptions['colour']
  /** absent: answers are not rated */
  rate?: ((turn: Turn, feedback: Feedback | undefined) => Promise<void>) | undefined
}

export class ConversationView {
  readonly #options: ConversationViewOptions
  readonly #views = new Map<Turn, TurnView>()
  readonly #due = new Set<Turn>()
  #markdown: Markdown | undefined
  #framed = 0
  #follows = true
  /** whether the next scroll is ours */
  #isScrolling = false

  constructor(options: ConversationViewOptions) {
    this.#options = options
    options.frame.scroller.addEventListener('scroll', () => this.#scrolled(), { passive: true })
  }

  /** Shows from now on what Markdown says. */
  set markdown(markdown: Markdown | undefined) {
    this.#markdown = markdown
    this.#updateAll()
  }

  /** A turn has changed: it is drawn with the next frame. Without one, there are others. */
  changed(turn?: Turn): void {
    if (turn) this.#due.add(turn)
    else this.layOut()
    this.#framed ||= requestAnimationFrame(() => this.#draw())
  }

  /** Shows the end of a turn at once. */
  ended(): void {
    this.#draw()
    this.layOut()
  }

  /** Stays at the end of the conversation, wherever its reader was. */
  follow(): void {
    this.#follows = true
  }

  close(): void {
    cancelAnimationFrame(this.#framed)
  }

  /** Says something to whoever listens. */
  say(text: string): void {
    this.#options.frame.live.append(h('p', {}, text))
  }

  /** Has the elements of turns be those of the conversation, and the buttons fit its state. */
  layOut(): void {
    const { frame, words, placeholder } = this.#options
    const { turns = [], busy = false, declined = 0 } = this.#options.session() ?? {}
    for (const [turn, view] of this.#views) {
      if (turns.includes(turn)) continue
      view.element.remove()
      this.#views.delete(turn)
    }
    for (const turn of turns) {
      const view = this.#views.get(turn) ?? new TurnView(turn, this.#host)
      this.#views.set(turn, view)
      if (view.element.parentNode !== frame.turns) frame.turns.append(view.element)
    }
    this.#updateAll()
    frame.welcome.hidden = turns.length > 0
    frame.newChat.hidden = turns.length === 0
    const answered = turns.some(({ state }) => state === 'done')
    frame.share.hidden = !answered
    this.#options.standing(answered, declined)
    const hadFocus = frame.stop.matches(':focus')
    frame.stop.hidden = !busy
    frame.send.hidden = busy
    if (hadFocus && !busy) frame.field.focus()
    frame.field.placeholder = turns.length > 0 ? words.followup : placeholder
    if (this.#follows) this.#toEnd()
  }

  #updateAll(): void {
    for (const view of this.#views.values()) view.update()
  }

  /** What came in since the last frame, at once. */
  #draw(): void {
    this.#framed = 0
    for (const turn of this.#due) this.#views.get(turn)?.update()
    this.#due.clear()
    if (this.#follows) this.#toEnd()
    else this.#offerEnd()
  }

  get #host() {
    const { words, session, ask, decide, cited, card, rate, colour } = this.#options
    return {
      words,
      ask,
      decide,
      ...(rate && { rate }),
      markdown: () => this.#markdown,
      colour,
      cite: (opener: HTMLElement, evidence: () => Evidence, peeks: boolean) =>
        card.serve(opener, evidence, peeks, cited),
      copied: (text: string, button: HTMLButtonElement) => this.copy(text, button),
      say: (text: string) => this.say(text),
      isLast: (turn: Turn) => session()?.turns.at(-1) === turn,
      busy: () => session()?.busy ?? false,
      show: (turn: Turn, version: number) => {
        session()
          ?.show(turn, version)
          .catch(() => this.say(words.offline))
      },
    }
  }

  /** Puts a text into the clipboard. A mark on the button says so for a moment. */
  async copy(text: string, button: HTMLButtonElement): Promise<void> {
    const { words } = this.#options
    if (button.querySelector('.icon-check')) return
    const usual = [...button.childNodes]
    try {
      await navigator.clipboard.writeText(text)
    } catch {
      this.say(words.failed)
      return
    }
    this.say(words.copied)
    button.replaceChildren(icon('check'))
    setTimeout(() => button.replaceChildren(...usual), COPIED_MS)
  }

  #scrolled(): void {
    const left = this.#offerEnd()
    if (!this.#isScrolling) this.#follows = left < NEAR
    this.#isScrolling = false
  }

  /** Shows the button to the end where the end is far. @returns pixels to the end */
  #offerEnd(): number {
    const { scroller, latest } = this.#options.frame
    const left = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight
    latest.hidden = left < NEAR * 3
    return left
  }

  #toEnd(): void {
    const { scroller, welcome } = this.#options.frame
    // Before the first question there is only a greeting, which is read from its beginning.
    const end = welcome.hidden ? scroller.scrollHeight - scroller.clientHeight : 0
    if (Math.abs(end - scroller.scrollTop) < 1) return
    this.#isScrolling = true
    scroller.scrollTop = end
  }
}
