/** Thumbs below an answer, and a field for a comment once one of them is pressed. */
import { h, iconButton } from './dom'
import type { Turn } from './turn'
import type { Feedback, Rating } from './wire'
import type { Words } from './words'

const LONGEST_COMMENT = 2_000

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
  /** One request at a time, so that the last press is the last word. */
  #isSending = false

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
          event.stopPropagation()
          this.#close()
        },
      },
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
    for (const button of this.buttons) {
      button.setAttribute('aria-pressed', String(button.dataset.rating === this.#turn.feedback?.rating))
    }
  }

  async #press(rating: Rating): Promise<void> {
    const { words } = this.#host
    const isWithdrawn = this.#turn.feedback?.rating === rating
    if (!(await this.#send(isWithdrawn ? undefined : { rating }))) return
    this.#field.value = ''
    this.#form.hidden = isWithdrawn
    this.#tell(isWithdrawn ? words.withdrawn : words.thanks)
  }

  async #comment(): Promise<void> {
    const comment = this.#field.value.trim()
    const { feedback } = this.#turn
    if (comment === '' || !feedback) return this.#close()
    if (!(await this.#send({ ...feedback, comment }))) return
    this.#close()
    this.#tell(this.#host.words.thanks)
  }

  /** @returns whether the server has taken it */
  async #send(feedback: Feedback | undefined): Promise<boolean> {
    if (this.#isSending) return false
    this.#isSending = true
    try {
      await this.#host.rate(this.#turn, feedback)
      return true
    } catch {
      this.#tell(this.#host.words.failed)
      return false
    } finally {
      this.#isSending = false
      this.update()
    }
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
