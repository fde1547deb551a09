/** Turns on a page, wherever they stand: drawn once a frame, and followed to their end while they grow. */
import { h, icon } from './dom'
import type { Markdown } from './markdown'
import type { Session, Turn } from './session'
import { type TurnHost, TurnView } from './turn-view'

/** How near to its end, in pixels, a conversation is followed. */
const NEAR = 60
/** How long it is shown that something was copied, in milliseconds. */
const COPIED_MS = 1_600
/** Lines of what was said that are kept. */
const MOST_SAID = 20

/** The elements that turns stand among. */
interface Stage {
  scroller: HTMLElement
  /** what grows within the scroller */
  turns: HTMLElement
  /** leads back to the end */
  latest: HTMLElement
  /** what is said to whoever listens */
  live: HTMLElement
}

export interface TurnsViewOptions
  extends Pick<TurnHost, 'words' | 'ask' | 'decide' | 'cite' | 'colour' | 'rate'> {
  session(): Session | undefined
  /** what is said where the browser does not let the page copy */
  cannotCopy: string
}

export class TurnsView {
  readonly #stage: Stage
  readonly #options: TurnsViewOptions
  readonly #views = new Map<Turn, TurnView>()
  readonly #due = new Set<Turn>()
  readonly #growth: ResizeObserver
  #markdown: Markdown | undefined
  #framed = 0
  #follows = true
  /** where the scroller was last */
  #top = 0

  constructor(stage: Stage, options: TurnsViewOptions) {
    this.#stage = stage
    this.#options = options
    stage.scroller.addEventListener('scroll', () => this.#scrolled(), { passive: true })
    // What is written makes it higher, and its reader stays at its end.
    this.#growth = new ResizeObserver(() => this.settle())
    this.#growth.observe(stage.turns)
  }

  /** Shows from now on what Markdown says. */
  set markdown(markdown: Markdown | undefined) {
    this.#markdown = markdown
    this.updateAll()
  }

  /** Shows a turn within an element. @returns takes it off again */
  show(turn: Turn, within: HTMLElement): () => void {
    const view = new TurnView(turn, this.#host)
    this.#views.set(turn, view)
    within.append(view.element)
    return () => {
      view.element.remove()
      this.#views.delete(turn)
    }
  }

  /** A turn has changed: it is drawn with the next frame. */
  changed(turn?: Turn): void {
    if (turn) this.#due.add(turn)
    this.#framed ||= requestAnimationFrame(() => this.draw())
  }

  updateAll(): void {
    for (const view of this.#views.values()) view.update()
  }

  /** What came in since the last frame, at once. */
  protected draw(): void {
    this.#framed = 0
    for (const turn of this.#due) this.#views.get(turn)?.update()
    this.#due.clear()
  }

  /** Stays at the end of the conversation, wherever its reader was. */
  follow(): void {
    this.#follows = true
  }

  close(): void {
    cancelAnimationFrame(this.#framed)
    this.#growth.disconnect()
  }

  /** Says something to whoever listens. */
  say(text: string): void {
    const { live } = this.#stage
    live.append(h('p', {}, text))
    if (live.childElementCount > MOST_SAID) live.firstElementChild?.remove()
  }

  get #host(): TurnHost {
    const { words, ask, decide, cite, colour, rate, session } = this.#options
    return {
      words,
      ask,
      decide,
      cite,
      ...(colour && { colour }),
      ...(rate && { rate }),
      markdown: () => this.#markdown,
      copied: (text, button) => this.copy(text, button),
      say: (text) => this.say(text),
      isLast: (turn) => session()?.turns.at(-1) === turn,
      busy: () => session()?.busy ?? false,
      show: (turn, version) => {
        session()
          ?.show(turn, version)
          .catch(() => this.say(words.offline))
      },
    }
  }

  /** Puts a text into the clipboard. A mark on the button says so for a moment. */
  async copy(text: string, button: HTMLButtonElement): Promise<void> {
    const { words, cannotCopy } = this.#options
    if (button.querySelector('.icon-check')) return
    const usual = [...button.childNodes]
    try {
      await navigator.clipboard.writeText(text)
    } catch {
      this.say(cannotCopy)
      return
    }
    this.say(words.copied)
    button.replaceChildren(icon('check'))
    setTimeout(() => button.replaceChildren(...usual), COPIED_MS)
  }

  /** More may have been written since a scroll began: only who scrolls up leaves the end. */
  #scrolled(): void {
    const { scrollTop } = this.#stage.scroller
    if (this.#offerEnd() < NEAR) this.#follows = true
    else if (scrollTop < this.#top) this.#follows = false
    this.#top = scrollTop
  }

  /** Shows the button to the end where the end is far. @returns pixels to the end */
  #offerEnd(): number {
    const { scroller, latest } = this.#stage
    const left = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight
    latest.hidden = left < NEAR * 3
    return left
  }

  /** Goes to the end with whoever reads there, or offers it. What is shown before the first question stays at its beginning. */
  protected settle(): void {
    const { scroller } = this.#stage
    if (this.#follows && this.#views.size > 0) scroller.scrollTop = scroller.scrollHeight
    this.#offerEnd()
  }
}
