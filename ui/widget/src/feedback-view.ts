/** Thumbs below an answer, and once one of them is pressed a field for a comment, with reasons to choose for the thumb down. */
import { h, iconButton } from './dom'
import type { Turn } from './turn'
import type { Feedback, Rating } from './wire'
import type { Words } from './words'

const LONGEST_COMMENT = 2_000

/** What may be wrong with an answer, as the server stores it, and the words for it. */
export const REASONS: Record<string, keyof Words> = {
  wrong: 'wrong',
  off_topic: 'offTopic',
  outdated: 'outdated',
  incomplete: 'incomplete',
  unclear: 'unclear',
}

export interface FeedbackHost {
  words: Words
  /** Stores a rating; undefined takes it back. Rejects where the server does not take it. */
  rate(turn: Turn, feedback: Feedback | undefined): Promise<void>
  /** says something to whoever listens */
  say(text: string): void
}

export class FeedbackView {
  readonly buttons: HTMLButtonElement[]
  readonly element: HTMLElement
  readonly #turn: Turn
  readonly #host: FeedbackHost
  readonly #note = h('p', { class: 'feedback-note' })
  readonly #field: HTMLTextAreaElement
  readonly #form: HTMLFormElement
  readonly #reasons: HTMLElement
  /** One request after another, so that the last press is the last word. */
  #sent: Promise<boolean> = Promise.resolve(true)

  constructor(turn: Turn, host: FeedbackHost) {
    this.#turn = turn
    this.#host = host
    const { words } = host
    const thumb = (rating: Rating) =>
      iconButton(
        rating === 'up' ? 'thumbUp' : 'thumbDown',
        rating === 'up' ? words.good : words.bad,
        () => this.#press(rating),
        {
          part: 'rating',
          'data-rating': rating,
        },
      )
    this.buttons = [thumb('up'), thumb('down')]
    this.#field = h('textarea', {
      rows: 2,
      maxlength: LONGEST_COMMENT,
      dir: 'auto',
      'aria-label': words.comment,
      placeholder: words.comment,
    })
    const button = (kind: string, type: string, text: string, onclick?: () => void) =>
      h('button', { type, class: kind, onclick: onclick ?? (() => {}) }, text)
    const reasons = Object.entries(REASONS).map(([reason, name]) =>
      h(
        'button',
        { type: 'button', class: 'reason', 'data-reason': reason, onclick: () => this.#choose(reason) },
        words[name],
      ),
    )
    this.#reasons = h(
      'div',
      { class: 'reasons', part: 'reasons', role: 'group', 'aria-label': words.reasons },
      ...reasons,
    )
    this.#form = h(
      'form',
      {
        class: 'editing',
        hidden: true,
        onsubmit: (event: Event) => {
          event.preventDefault()
          this.#comment()
        },
        onkeydown: (event: KeyboardEvent) => {
          if (event.key !== 'Escape' || event.isComposing) return
          event.preventDefault()
          event.stopPropagation()
          this.#close()
        },
      },
      this.#reasons,
      this.#field,
      h(
        'div',
        { class: 'editing-buttons' },
        button('quiet', 'button', words.cancel, () => this.#close()),
        button('primary', 'submit', words.send),
      ),
    )
    this.element = h('div', { class: 'feedback', part: 'feedback' }, this.#note, this.#form)
    this.update()
  }

  update(): void {
    const { rating, reasons = [] } = this.#turn.feedback ?? {}
    for (const button of this.buttons) {
      button.setAttribute('aria-pressed', String(button.dataset.rating === rating))
    }
    this.#reasons.hidden = rating !== 'down'
    for (const button of this.#reasons.querySelectorAll('button')) {
      button.setAttribute('aria-pressed', String(reasons.includes(button.dataset.reason ?? '')))
    }
  }

  async #press(rating: Rating): Promise<void> {
    const { words } = this.#host
    const sent = await this.#send((before) => (before?.rating === rating ? undefined : { rating }))
    if (!sent) return
    const isWithdrawn = this.#turn.feedback === undefined
    this.#field.value = ''
    this.#form.hidden = isWithdrawn
    this.#tell(isWithdrawn ? words.withdrawn : words.thanks)
    // What it asks would stand below the end of a small screen.
    this.#form.scrollIntoView({ block: 'nearest' })
  }

  /** Adds a reason, or takes it back. It is sent at once: not everybody presses the button below. */
  #choose(reason: string): void {
    this.#send((before) => {
      if (before?.rating !== 'down') return before
      const { reasons: chosen = [], ...rest } = before
      const reasons = chosen.includes(reason) ? chosen.filter((each) => each !== reason) : [...chosen, reason]
      return { ...rest, ...(reasons.length > 0 && { reasons }) }
    })
  }

  async #comment(): Promise<void> {
    const comment = this.#field.value.trim()
    if (comment === '' || !this.#turn.feedback) return this.#close()
    if (!(await this.#send((before) => before && { ...before, comment }))) return
    this.#close()
    this.#tell(this.#host.words.thanks)
  }

  /** @param change of what was said before. @returns whether the server has taken it */
  #send(change: (before: Feedback | undefined) => Feedback | undefined): Promise<boolean> {
    this.#sent = this.#sent.then(async () => {
      try {
        await this.#host.rate(this.#turn, change(this.#turn.feedback))
        return true
      } catch {
        this.#tell(this.#host.words.failed)
        return false
      } finally {
        this.update()
      }
    })
    return this.#sent
  }

  #tell(text: string): void {
    this.#note.textContent = text
    this.#host.say(text)
  }

  #close(): void {
    const hadFocus = this.#form.contains((this.#form.getRootNode() as ShadowRoot).activeElement)
    this.#form.hidden = true
    if (hadFocus) this.buttons.find((button) => button.getAttribute('aria-pressed') === 'true')?.focus()
  }
}
