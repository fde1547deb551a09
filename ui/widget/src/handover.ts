/** The way to people: a link, or a form below the conversation, which is offered by itself where answers were declined. */
import { h, icon, iconButton } from './dom'
import type { Front } from './wire'
import type { Words } from './words'

const LONGEST_CONTACT = 320
const LONGEST_MESSAGE = 4_000

export interface HandoverHost {
  words: Words
  /** Sends the form. Rejects where the server does not take it. */
  handOver(contact: string, message: string): Promise<void>
  /** says something to whoever listens */
  say(text: string): void
}

/** What a conversation says of whether people are needed. */
interface Standing {
  /** whether there is something to hand over */
  answered: boolean
  /** answers declined in a row, at its end */
  declined: number
}

export class Handover {
  /** stands in the head */
  readonly button: HTMLElement
  /** stands below the turns */
  readonly element: HTMLElement
  readonly #host: HandoverHost
  readonly #offer: HTMLElement
  readonly #form: HTMLFormElement
  readonly #contact: HTMLInputElement
  readonly #message: HTMLTextAreaElement
  readonly #hint = h('p', { class: 'handover-hint' })
  readonly #note = h('p', { class: 'handover-note', role: 'status' })
  #way: NonNullable<Front['handover']> = {}
  #isOffered = false

  constructor(host: HandoverHost) {
    const { words } = host
    this.#host = host
    this.button = iconButton('person', words.person, () => this.#open(), {
      class: 'tool handover-button',
      part: 'handover',
      hidden: true,
    })
    this.#offer = h(
      'button',
      { type: 'button', class: 'followup', part: 'suggestion', hidden: true, onclick: () => this.#open() },
      icon('person'),
      words.person,
    )
    this.#contact = h('input', {
      type: 'text',
      required: true,
      maxlength: LONGEST_CONTACT,
      autocomplete: 'email',
    })
    this.#message = h('textarea', { rows: 2, maxlength: LONGEST_MESSAGE, dir: 'auto' })
    this.#form = h(
      'form',
      {
        class: 'editing handover-form',
        onsubmit: (event: Event) => {
          event.preventDefault()
          this.#send()
        },
        onkeydown: (event: KeyboardEvent) => {
          if (event.key !== 'Escape' || event.isComposing) return
          event.preventDefault()
          event.stopPropagation()
          this.#close()
        },
      },
      this.#hint,
      h('label', {}, words.contact, this.#contact),
      h('label', {}, words.need, this.#message),
      h(
        'div',
        { class: 'editing-buttons' },
        h('button', { type: 'button', class: 'quiet', onclick: () => this.#close() }, words.cancel),
        h('button', { type: 'submit', class: 'primary' }, words.send),
      ),
    )
    this.element = h('div', { class: 'handover', part: 'handover' }, this.#offer, this.#note)
  }

  /** how people are reached; undefined: not at all */
  set way(way: Front['handover']) {
    this.#way = way ?? {}
    this.#hint.textContent = this.#way.outside || this.#host.words.personReads
  }

  /** Fits the buttons to the conversation. */
  update({ answered, declined }: Standing): void {
    const { url, form, after } = this.#way
    this.button.hidden = url === undefined && !(form && answered)
    this.#isOffered = answered && after !== undefined && declined >= after
    this.#offer.hidden = !this.#isOffered || this.#form.isConnected
    if (!answered) {
      this.#form.remove()
      this.#note.textContent = ''
    }
  }

  #open(): void {
    const { url } = this.#way
    if (url !== undefined) {
      window.open(url, /^https:/.test(url) ? '_blank' : '_self', 'noopener')
      return
    }
    this.#note.textContent = ''
    this.#offer.hidden = true
    this.#note.before(this.#form)
    this.#form.scrollIntoView({ block: 'nearest' })
    this.#contact.focus()
  }

  #close(): void {
    this.#form.remove()
    this.#offer.hidden = !this.#isOffered
    this.button.focus()
  }

  async #send(): Promise<void> {
    const { words, say, handOver } = this.#host
    const contact = this.#contact.value.trim()
    if (contact === '') return
    const buttons = this.#form.querySelectorAll('button')
    for (const button of buttons) button.disabled = true
    try {
      await handOver(contact, this.#message.value.trim())
      this.#message.value = ''
      this.#isOffered = false
      this.#form.remove()
      this.#tell(this.#way.outside || words.handedOver)
      this.button.focus()
    } catch (error) {
      // What was typed stays, for another try.
      const { status, message = '' } = error as { status?: number; message?: string }
      this.#tell(status === undefined ? words.offline : message)
    } finally {
      for (const button of buttons) button.disabled = false
    }
    say(this.#note.textContent ?? '')
  }

  #tell(text: string): void {
    this.#note.textContent = text
    this.#note.scrollIntoView({ block: 'nearest' })
  }
}
