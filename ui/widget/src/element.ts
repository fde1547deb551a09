/** `<parley-chat>`: a chat with an assistant of Parley's. docs/widget.md has its attributes, methods and events. */
import { Card } from './card'
import { h, icon } from './dom'
import { buildFrame, type Frame, MODES, type Mode } from './frame'
import { showHistory } from './history-list'
import type { Languages } from './languages'
import { load } from './load'
import type { Markdown } from './markdown'
import { Session, type Turn } from './session'
import { withoutMarks } from './sources'
import { visitorSecret } from './storage'
import { TurnView } from './turn-view'
import css from './widget.css'
import { ENGLISH, type Words } from './words'

/** How near to its end, in pixels, a conversation is followed. */
const NEAR = 60
const COPIED_MS = 1_600
const PHONE = '(max-width: 640px)'

let sheet: CSSStyleSheet | undefined

export class ParleyChat extends HTMLElement {
  static observedAttributes = [
    'assistant',
    'key',
    'api-key',
    'server',
    'mode',
    'theme',
    'lang',
    'heading',
    'open',
  ]

  #frame: Frame | undefined
  #session: Session | undefined
  #card: Card | undefined
  #words: Words = ENGLISH
  #markdown: Markdown | undefined
  #views = new Map<Turn, TurnView>()
  #due = new Set<Turn>()
  #framed = 0
  #follows = true
  #isSetting = false
  #prepared = false
  #places = new AbortController()

  constructor() {
    super()
    const shadow = this.attachShadow({ mode: 'open' })
    if (!sheet) {
      sheet = new CSSStyleSheet()
      sheet.replaceSync(css)
    }
    shadow.adoptedStyleSheets = [sheet]
  }

  /** where Parley answers; absent: where this script came from */
  get server(): string {
    return (this.getAttribute('server') ?? new URL(import.meta.url).origin).replace(/\/+$/, '')
  }

  get assistant(): string {
    return this.getAttribute('assistant') ?? 'default'
  }

  get mode(): Mode {
    const mode = this.getAttribute('mode') ?? 'inline'
    return (MODES.includes(mode) ? mode : 'inline') as Mode
  }

  set mode(mode: Mode) {
    this.setAttribute('mode', mode)
  }

  /** whether the chat is shown, in the modes that open and close */
  get open(): boolean {
    return this.hasAttribute('open')
  }

  set open(open: boolean) {
    this.toggleAttribute('open', open)
  }

  /** whether an answer is being written */
  get busy(): boolean {
    return this.#session?.busy ?? false
  }

  /** id of the conversation that is open; setting it opens another one */
  get conversation(): string | undefined {
    return this.#session?.id
  }

  set conversation(id: string | undefined) {
    if (id === undefined) this.newChat()
    else this.#session?.open(id)
  }

  connectedCallback(): void {
    this.#build()
  }

  disconnectedCallback(): void {
    this.#teardown()
  }

  attributeChangedCallback(name: string, before: string | null, after: string | null): void {
    if (!this.isConnected || before === after || !this.#frame) return
    if (name === 'open') this.#showOrHide()
    else if (name !== 'theme') {
      this.#teardown()
      this.#build()
    }
  }

  /** Asks a question, as if it was typed. Resolves when its answer has ended. */
  async ask(question: string, replaces?: Turn): Promise<void> {
    const text = question.trim()
    const session = this.#session
    if (text === '' || !session || session.busy) return
    if (!this.open) this.show()
    this.#hideHistory()
    await this.#prepare()
    this.#emit('parley-question', { question: text, conversation: session.id })
    this.#frame?.live.replaceChildren()
    this.#say(this.#words.searching)
    this.#follows = true
    await session.ask(text, replaces)
  }

  /** Ends the answer that is being written. */
  stop(): void {
    this.#session?.stop()
    this.#frame?.field.focus()
  }

  show(): void {
    this.open = true
  }

  hide(): void {
    this.open = false
  }

  toggle(): void {
    this.open = !this.open
  }

  /** Leaves the conversation. It stays in the list. */
  newChat(): void {
    this.#session?.leave()
    this.#hideHistory()
    this.#frame?.field.focus()
  }

  override focus(options?: FocusOptions): void {
    this.#frame?.field.focus(options)
  }

  #build(): void {
    const { mode } = this
    const hotkey = this.getAttribute('hotkey') ?? (mode === 'dialog' ? 'k' : '')
    const isMac = /mac|iphone|ipad/i.test(navigator.platform)
    const frame = buildFrame(
      {
        mode,
        words: this.#words,
        title: this.getAttribute('heading') ?? this.#words.title,
        placeholder: this.getAttribute('placeholder') ?? '',
        note: !this.hasAttribute('no-note'),
        launcher: !this.hasAttribute('no-launcher'),
        hotkey: hotkey === '' ? '' : `${isMac ? '⌘' : 'Ctrl '}${hotkey.toUpperCase()}`,
      },
      {
        toggle: () => this.toggle(),
        hide: () => this.hide(),
        newChat: () => this.newChat(),
        history: () => this.#toggleHistory(),
        send: () => this.#send(),
        stop: () => this.stop(),
      },
    )
    this.#frame = frame
    this.#card = new Card(() => this.#words)
    frame.main.append(this.#card.element)
    this.shadowRoot!.replaceChildren(frame.root)
    this.#session = new Session(
      {
        server: this.server,
        assistant: this.assistant,
        key: this.getAttribute('api-key') ?? this.getAttribute('key') ?? '',
        visitor: visitorSecret(),
      },
      { changed: (turn) => this.#changed(turn), ended: (turn) => this.#ended(turn) },
    )
    this.#listen(frame, hotkey)
    this.#welcome([])
    this.#speakLanguage()
    if (mode === 'inline' || mode === 'page') this.#prepare()
    if (mode === 'page') this.#fillHistory()
    if (this.open) this.#showOrHide()
  }

  #teardown(): void {
    this.#places.abort()
    this.#session?.close()
    cancelAnimationFrame(this.#framed)
    this.#framed = 0
    this.#views.clear()
    this.#due.clear()
    this.#prepared = false
    this.#frame = undefined
  }

  #listen(frame: Frame, hotkey: string): void {
    this.#places = new AbortController()
    const { signal } = this.#places
    frame.field.addEventListener('input', () => this.#fit())
    frame.field.addEventListener('focus', () => this.#prepare())
    frame.field.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
      event.preventDefault()
      this.#send()
    })
    frame.scroller.addEventListener('scroll', () => this.#scrolled(), { passive: true })
    frame.scroller.addEventListener('scroll', () => this.#card?.close(false), { passive: true })
    frame.main.addEventListener('pointerdown', ({ target }) => {
      if (!this.#card?.element.contains(target as Node)) this.#card?.close(false)
    })
    frame.box.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape' || event.defaultPrevented || !(frame.box instanceof HTMLDialogElement))
        return
      event.preventDefault()
      if (!frame.history.hidden) this.#hideHistory(true)
      else this.hide()
    })
    frame.box.addEventListener('cancel', (event) => event.preventDefault())
    // Of a dialog, what is behind it is the dialog itself.
    frame.box.addEventListener('click', ({ target }) => {
      if (target === frame.box && frame.box.matches(':modal')) this.hide()
    })
    if (hotkey !== '') {
      addEventListener(
        'keydown',
        (event) => {
          if (
            event.key.toLowerCase() !== hotkey ||
            !(event.metaKey || event.ctrlKey) ||
            event.altKey ||
            event.shiftKey
          )
            return
          event.preventDefault()
          this.toggle()
        },
        { signal },
      )
    }
  }

  /** Loads what an answer needs, and what is there already. Once, when somebody is about to ask. */
  async #prepare(): Promise<void> {
    const session = this.#session
    if (this.#prepared || !session) return
    this.#prepared = true
    const markdown = load<Markdown>('markdown', this.nonce).then(
      (loaded) => {
        this.#markdown = loaded
        this.#renderAll()
      },
      (error) => this.#failed(error),
    )
    const front = session.api.front().then(
      (front) => {
        session.front = front
        this.#welcome(front.questions)
      },
      (error) => {
        if (session === this.#session) this.#failed(error)
      },
    )
    await Promise.all([markdown, front])
    if (session === this.#session && session.turns.length === 0)
      await session.open().catch((error) => this.#failed(error))
  }

  #failed(error: unknown): void {
    const { status = 0, message = '' } = error as { status?: number; message?: string }
    this.#emit('parley-error', { status, message })
    if (status === 401 || status === 403 || status === 404) {
      this.#frame?.welcome.replaceChildren(h('p', { class: 'refused', role: 'alert' }, this.#words.refused))
    }
  }

  /** What is shown before anything was asked. */
  #welcome(questions: readonly string[]): void {
    const words = this.#words
    this.#frame?.welcome.replaceChildren(
      h('div', { class: 'welcome-mark' }, icon('spark')),
      h('p', { class: 'welcome-title', dir: 'auto' }, this.getAttribute('welcome') ?? words.welcome),
      h('p', { class: 'welcome-hint' }, words.hint),
      (questions.length > 0 &&
        h(
          'ul',
          { class: 'first-questions' },
          ...questions
            .slice(0, 6)
            .map((text) =>
              h(
                'li',
                {},
                h(
                  'button',
                  {
                    type: 'button',
                    class: 'suggestion',
                    part: 'suggestion',
                    dir: 'auto',
                    onclick: () => this.ask(text),
                  },
                  text,
                ),
              ),
            ),
        )) ||
        '',
    )
    this.#layOut()
  }

  async #speakLanguage(): Promise<void> {
    const tag =
      this.getAttribute('lang') || this.closest('[lang]')?.getAttribute('lang') || navigator.language
    this.lang ||= tag
    if (tag.toLowerCase().startsWith('en')) return
    const languages = await load<Languages>('languages', this.nonce).catch(() => undefined)
    const words = languages?.wordsIn(tag)
    if (!words || words.title === this.#words.title || !this.isConnected) return
    this.#words = words
    this.#teardown()
    this.#build()
  }

  #send(): void {
    const field = this.#frame?.field
    if (!field || this.busy || field.value.trim() === '') return
    const question = field.value
    field.value = ''
    this.#fit()
    this.ask(question)
  }

  /** Makes the field as high as its text. */
  #fit(): void {
    const field = this.#frame?.field
    if (!field) return
    field.style.setProperty('height', 'auto')
    field.style.setProperty('height', `${field.scrollHeight}px`)
    this.#frame!.send.classList.toggle('ready', field.value.trim() !== '')
  }

  #changed(turn?: Turn): void {
    if (turn) this.#due.add(turn)
    else this.#layOut()
    this.#framed ||= requestAnimationFrame(() => this.#draw())
  }

  /** What came in since the last frame, at once. */
  #draw(): void {
    this.#framed = 0
    for (const turn of this.#due) this.#views.get(turn)?.update()
    this.#due.clear()
    if (this.#follows) this.#toEnd()
  }

  #ended(turn: Turn): void {
    this.#draw()
    this.#renderAll()
    this.#layOut()
    const { state, question, answer, sources, citations, number, error } = turn
    if (state === 'done') {
      this.#say(this.#words.ready)
      const text = withoutMarks(answer, sources)
      this.#emit('parley-answer', {
        conversation: this.conversation,
        turn: number,
        question,
        answer: text,
        citations,
      })
      if (this.mode === 'page') this.#fillHistory()
    } else if (state === 'stopped') this.#say(this.#words.stopped)
    else {
      this.#say(this.#words.failed)
      this.#emit('parley-error', error)
    }
  }

  #renderAll(): void {
    for (const view of this.#views.values()) view.update()
  }

  /** Has the elements of turns be those of the conversation, and the buttons fit its state. */
  #layOut(): void {
    const { turns = [], busy = false } = this.#session ?? {}
    const frame = this.#frame
    if (!frame) return
    for (const [turn, view] of this.#views) {
      if (turns.includes(turn)) continue
      view.element.remove()
      this.#views.delete(turn)
    }
    for (const turn of turns) {
      const view = this.#views.get(turn) ?? new TurnView(turn, this.#host())
      this.#views.set(turn, view)
      if (view.element.parentNode !== frame.turns) frame.turns.append(view.element)
    }
    for (const view of this.#views.values()) view.update()
    frame.welcome.hidden = turns.length > 0
    frame.newChat.hidden = turns.length === 0
    const hadFocus = this.shadowRoot!.activeElement === frame.stop
    frame.stop.hidden = !busy
    frame.send.hidden = busy
    if (hadFocus && !busy) frame.field.focus()
    frame.field.placeholder =
      turns.length > 0 ? this.#words.followup : (this.getAttribute('placeholder') ?? this.#words.placeholder)
    if (this.#follows) this.#toEnd()
  }

  #host() {
    return {
      words: this.#words,
      markdown: () => this.#markdown,
      ask: (question: string, replaces?: Turn) => {
        this.ask(question, replaces)
        this.#frame?.field.focus({ preventScroll: true })
      },
      cite: (...args: [HTMLElement, Turn['sources'][number], string | undefined, string]) => {
        const [opener, source, quote, sentence] = args
        this.#card?.open(opener, this.#frame!.main, source, quote, sentence)
        const { collection, documentId, title, url } = source
        this.#emit('parley-citation', { collection, document_id: documentId, title, url })
      },
      copied: (text: string, button: HTMLButtonElement) => this.#copy(text, button),
      say: (text: string) => this.#say(text),
      isLast: (turn: Turn) => this.#session?.turns.at(-1) === turn,
      busy: () => this.busy,
    }
  }

  async #copy(text: string, button: HTMLButtonElement): Promise<void> {
    await navigator.clipboard.writeText(text).then(
      () => {
        this.#say(this.#words.copied)
        button.replaceChildren(icon('check'))
        setTimeout(() => button.replaceChildren(icon('copy')), COPIED_MS)
      },
      () => this.#say(this.#words.failed),
    )
  }

  #say(text: string): void {
    this.#frame?.live.append(h('p', {}, text))
  }

  #scrolled(): void {
    const { scroller, latest } = this.#frame!
    const left = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight
    if (!this.#isSetting) this.#follows = left < NEAR
    this.#isSetting = false
    latest.hidden = left < NEAR * 3
  }

  #toEnd(): void {
    const { scroller } = this.#frame ?? {}
    if (!scroller) return
    const end = scroller.scrollHeight - scroller.clientHeight
    if (Math.abs(end - scroller.scrollTop) < 1) return
    this.#isSetting = true
    scroller.scrollTop = end
  }

  #showOrHide(): void {
    const { box, launcher, field } = this.#frame ?? {}
    if (!(box instanceof HTMLDialogElement) || box.open === this.open) return
    launcher?.setAttribute('aria-expanded', String(this.open))
    this.#frame!.root.classList.toggle('is-open', this.open)
    if (!this.open) {
      box.close()
      launcher?.focus()
      this.#emit('parley-close', {})
      return
    }
    if (this.mode === 'dialog' || matchMedia(PHONE).matches) box.showModal()
    else box.show()
    field?.focus()
    this.#prepare()
    this.#layOut()
    this.#emit('parley-open', {})
  }

  #toggleHistory(): void {
    const { history, historyButton } = this.#frame!
    if (!history.hidden) return this.#hideHistory(true)
    history.hidden = false
    historyButton.setAttribute('aria-expanded', 'true')
    this.#fillHistory().then(() => history.querySelector<HTMLElement>('button')?.focus())
  }

  /** @param refocus whether the button that opens it is focused */
  #hideHistory(refocus = false): void {
    const { history, historyButton } = this.#frame ?? {}
    if (!history || history.hidden || this.mode === 'page') return
    history.hidden = true
    historyButton!.setAttribute('aria-expanded', 'false')
    if (refocus) historyButton!.focus()
  }

  async #fillHistory(): Promise<void> {
    const session = this.#session!
    await showHistory(this.#frame!.history, {
      words: this.#words,
      language: this.lang,
      api: session.api,
      current: () => session.id,
      newChat: () => this.newChat(),
      open: (id) => {
        this.#hideHistory()
        this.#follows = true
        session.open(id).then(() => {
          if (this.mode === 'page') this.#fillHistory()
        })
        this.#frame?.field.focus()
      },
      removed: (id) => {
        if (id === session.id) session.leave()
      },
    })
  }

  #emit(name: string, detail: unknown): void {
    this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true }))
  }
}
