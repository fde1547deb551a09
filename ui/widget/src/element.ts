/** `<parley-chat>`: a chat with an assistant of Parley's. docs/widget.md has its attributes, methods and events. */

import { Attachments } from './attachments'
import { AttributeElement } from './attributes'
import { type PageTools, waitingIn } from './calls'
import { Card } from './card'
import { ConversationView } from './conversation-view'
import { h } from './dom'
import type { FinderPart } from './finder'
import { buildFrame, type Frame } from './frame'
import { Handover } from './handover'
import { showHistory } from './history-list'
import { listen } from './keys'
import type { Languages } from './languages'
import { colours, load } from './load'
import type { Markdown } from './markdown'
import type { Pdf } from './pdf'
import { standAbove, standBeside } from './place'
import { Session, type Turn } from './session'
import { asMarkdown } from './share'
import { withoutMarks } from './sources'
import { Draft, visitorSecret } from './storage'
import base from './styles/base.css'
import composer from './styles/composer.css'
import opening from './styles/opening.css'
import prose from './styles/prose.css'
import tool from './styles/tool.css'
import turn from './styles/turn.css'
import { fillWelcome } from './welcome'
import type { AttachedFile, Feedback } from './wire'
import { ENGLISH, type Words } from './words'

const PHONE = '(max-width: 640px)'

/** Of the widget's own words. What people and models write has its own. */
const directionOf = (language: string): string => (/^(ar|fa|he|ur)\b/.test(language) ? 'rtl' : 'ltr')

/** A language's tag as browsers take it. Pages write `de_DE`, too. @returns '' for what is none */
function tagOf(written: string): string {
  try {
    return Intl.getCanonicalLocales(written.replaceAll('_', '-'))[0] ?? ''
  } catch {
    return ''
  }
}

let sheet: CSSStyleSheet | undefined

export class ParleyChat extends AttributeElement {
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
  #attachments: Attachments | undefined
  #handover: Handover | undefined
  #words: Words = ENGLISH
  #markdown: Markdown | undefined
  #view: ConversationView | undefined
  #language = ''
  #preparing: Promise<unknown> | undefined
  #places = new AbortController()

  constructor() {
    super()
    const shadow = this.attachShadow({ mode: 'open' })
    if (!sheet) {
      sheet = new CSSStyleSheet()
      sheet.replaceSync(base + tool + turn + prose + composer + opening)
    }
    shadow.adoptedStyleSheets = [sheet]
  }

  /** functions that answers may call, by the names of the assistant's tools of the page */
  tools: PageTools = {}

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
    else this.#session?.open(id, true)
  }

  connectedCallback(): void {
    this.#words = ENGLISH
    this.#build()
  }

  disconnectedCallback(): void {
    this.#teardown()
  }

  attributeChangedCallback(name: string, before: string | null, after: string | null): void {
    if (!this.isConnected || before === after || !this.#frame) return
    if (name === 'open') this.#showOrHide()
    else if (name !== 'theme') {
      if (name === 'lang') this.#words = ENGLISH
      this.#teardown()
      this.#build()
    }
  }

  /** Asks a question, as if it was typed. Resolves when its answer has ended. */
  async ask(question: string, replaces?: Turn, files?: AttachedFile[]): Promise<void> {
    const text = question.trim()
    const session = this.#session
    if (text === '' || !session || session.busy) return
    if (!this.open) this.show()
    this.#hideHistory()
    await this.#prepare()
    if (session.busy) return
    this.#emit('parley-question', { question: text })
    this.#frame?.live.replaceChildren()
    this.#view?.say(this.#words.searching)
    this.#view?.follow()
    await session.ask(text, replaces, files)
  }

  /** Ends the answer that is being written. */
  stop(): void {
    this.#session?.stop()
    this.#frame?.field.focus()
  }

  /** Leaves the conversation. It stays in the list. */
  newChat(): void {
    this.#session?.leave()
    this.#hideHistory()
    this.#frame?.field.focus()
  }

  /** The conversation as Markdown, with its sources as links. */
  asMarkdown(): string {
    return asMarkdown(this.#session?.turns ?? [])
  }

  override focus(options?: FocusOptions): void {
    this.#frame?.field.focus(options)
  }

  #build(): void {
    const { mode } = this
    const hotkey = this.getAttribute('hotkey') ?? (mode === 'dialog' ? 'k' : '')
    const isMac = /mac|iphone|ipad/i.test(navigator.platform)
    const attachments = new Attachments(
      this.#words,
      (text) => this.#view?.say(text),
      () => load<Pdf>('pdf', this.nonce),
    )
    this.#attachments = attachments
    const handover = new Handover({
      words: this.#words,
      handOver: (contact, message) => this.#handOver(contact, message),
      say: (text) => this.#view?.say(text),
    })
    this.#handover = handover
    const frame = buildFrame(
      {
        mode,
        sidebar: mode === 'page' && !matchMedia(PHONE).matches,
        words: this.#words,
        draft: new Draft(this.server, this.assistant),
        attachments,
        handover,
        title: this.getAttribute('heading') ?? this.#words.title,
        direction: this.#words === ENGLISH ? undefined : directionOf(this.#language),
        placeholder: this.getAttribute('placeholder') ?? '',
        note: !this.hasAttribute('no-note'),
        launcher: !this.hasAttribute('no-launcher'),
        hotkey: hotkey === '' ? '' : `${isMac ? '⌘' : 'Ctrl '}${hotkey.toUpperCase()}`,
      },
      {
        toggle: () => this.toggle(),
        hide: () => this.hide(),
        newChat: () => this.newChat(),
        share: () => this.#view?.copy(this.asMarkdown(), frame.share),
        history: () => this.#toggleHistory(),
        ask: async (question) => this.ask(question, undefined, await attachments.take()),
        stop: () => this.stop(),
      },
    )
    this.#frame = frame
    const card = new Card(
      () => this.#words,
      () => frame.main,
    )
    frame.main.append(card.element)
    this.shadowRoot!.replaceChildren(frame.root)
    this.#session = new Session(
      {
        server: this.server,
        assistant: this.assistant,
        key: this.getAttribute('api-key') ?? this.getAttribute('key') ?? '',
        visitor: visitorSecret(),
      },
      { changed: (turn) => this.#view?.changed(turn), ended: (turn) => this.#ended(turn) },
    )
    this.#view = new ConversationView({
      frame,
      words: this.#words,
      placeholder: frame.field.placeholder,
      cannotCopy: this.#words.failed,
      session: () => this.#session,
      ask: (question, replaces) => {
        this.ask(question, replaces)
        frame.field.focus({ preventScroll: true })
      },
      decide: (turn, isAllowed) => this.#decide(turn, isAllowed),
      standing: (answered, declined) => handover.update({ answered, declined }),
      ...(!this.hasAttribute('no-feedback') && { rate: (turn, feedback) => this.#rate(turn, feedback) }),
      colour: colours(this.nonce),
      cite: (opener, evidence, peeks) =>
        card.serve(opener, evidence, peeks, ({ collection, documentId, title, url }) =>
          this.#emit('parley-citation', { collection, document_id: documentId, title, url }),
        ),
    })
    if (this.#markdown) this.#view.markdown = this.#markdown
    this.#places = new AbortController()
    const back = () => {
      if (frame.history.hidden) this.hide()
      else this.#hideHistory(true)
    }
    const actions = {
      back,
      prepare: () => this.#prepare(),
      toggle: () => this.toggle(),
      hide: () => this.hide(),
    }
    attachments.listen(frame.main, frame.field)
    if (this.hasAttribute('search')) this.#findWhileTyping(frame)
    if (frame.launcher) standBeside(this, frame.root, this.#places.signal)
    standAbove(frame.root, this.#places.signal)
    listen(frame, card, hotkey, actions, this.#places.signal)
    this.#welcome([])
    this.#speakLanguage()
    if (mode === 'inline' || mode === 'page') this.#prepare()
    if (this.#hasSidebar) this.#fillHistory()
    if (this.open) this.#showOrHide()
  }

  #teardown(): void {
    this.#places.abort()
    this.#session?.close()
    this.#view?.close()
    this.#preparing = undefined
    this.#frame = undefined
  }

  /** Loads what an answer needs, and what is there already. Once, when somebody is about to ask. */
  #prepare(): Promise<unknown> {
    this.#preparing ??= this.#load(this.#session!)
    return this.#preparing
  }

  async #load(session: Session): Promise<void> {
    const markdown = load<Markdown>('markdown', this.nonce).then((loaded) => {
      this.#markdown = loaded
      if (this.#view) this.#view.markdown = loaded
    })
    const front = session.api.front().then((front) => {
      session.front = front
      if (session === this.#session && this.#attachments) this.#attachments.limits = front.attachments
      if (session === this.#session && this.#handover) this.#handover.way = front.handover
      this.#welcome(front.questions)
    })
    const failed = (error: unknown) => {
      if (session === this.#session) this.#failed(error)
    }
    await Promise.all([markdown.catch(failed), front.catch(failed)])
    if (session !== this.#session) return
    session.open().catch(failed)
    await session.ready
  }

  #failed(error: unknown): void {
    const { status = 0, message = '' } = error as { status?: number; message?: string }
    this.#emit('parley-error', { status, message })
    if (status === 401 || status === 403 || status === 404) {
      this.#frame?.welcome.replaceChildren(h('p', { class: 'refused', role: 'alert' }, this.#words.refused))
    }
  }

  #welcome(questions: readonly string[]): void {
    const words = this.#words
    const title = this.getAttribute('welcome') ?? words.welcome
    if (this.#frame) fillWelcome(this.#frame.welcome, words, title, questions, (text) => this.ask(text))
    this.#view?.layOut()
  }

  async #speakLanguage(): Promise<void> {
    const tag = tagOf(
      this.getAttribute('lang') || this.closest('[lang]')?.getAttribute('lang') || navigator.language,
    )
    this.#language = tag
    if (/^(en\b|$)/.test(tag)) return
    const languages = await load<Languages>('languages', this.nonce).catch(() => undefined)
    const words = languages?.wordsIn(tag)
    if (!words || words === this.#words || tag !== this.#language || !this.isConnected) return
    this.#words = words
    const hadFocus = this.#frame?.field === this.shadowRoot!.activeElement
    this.#teardown()
    this.#build()
    if (hadFocus) this.focus()
  }

  #ended(ended: Turn): void {
    const { state, question, answer, sources, citations, number: turn, error, author } = ended
    const words = this.#words
    this.#view?.ended()
    const ready = author === undefined ? words.ready : `${author}: ${answer}`
    this.#view?.say(state === 'done' ? ready : state === 'stopped' ? words.stopped : words.failed)
    if (state === 'failed') this.#emit('parley-error', error)
    if (state !== 'done') return
    const waiting = waitingIn(ended)
    if (waiting.length > 0 && waiting.every(({ awaits }) => awaits === 'page'))
      void this.#decide(ended, false)
    if (waiting.some(({ awaits }) => awaits === 'leave')) this.#view?.say(words.leave)
    const { conversation } = this
    const clean = withoutMarks(answer, sources)
    this.#emit('parley-answer', { conversation, turn, question, answer: clean, citations, author })
    if (this.#hasSidebar) this.#fillHistory()
  }

  async #decide(turn: Turn, isAllowed: boolean): Promise<void> {
    this.#view?.say(this.#words.calling)
    this.#view?.follow()
    await this.#session?.decide(turn, isAllowed, this.tools)
  }

  async #rate(turn: Turn, feedback: Feedback | undefined): Promise<void> {
    await this.#session?.rate(turn, feedback)
    const { conversation } = this
    this.#emit('parley-feedback', { conversation, turn: turn.number, ...feedback })
  }

  async #handOver(contact: string, message: string): Promise<void> {
    await this.#session?.handOver(contact, message)
    this.#emit('parley-handover', { conversation: this.conversation })
  }

  /** Shows pages that match, from the first letter on. */
  #findWhileTyping({ field, box }: Frame): void {
    const begin = async () => {
      const { attach } = await load<FinderPart>('finder', this.nonce)
      if (field !== this.#frame?.field) return
      attach({
        words: this.#words,
        field,
        before: box.querySelector('.field')!,
        find: (query, signal) => this.#session!.api.find(query, signal),
        opened: ({ collection, document_id, title, url }) =>
          this.#emit('parley-result', { collection, document_id, title, url }),
      })
    }
    field.setAttribute('role', 'combobox')
    field.setAttribute('aria-autocomplete', 'list')
    field.setAttribute('aria-expanded', 'false')
    // Without it, questions are still answered.
    field.addEventListener('input', () => void begin().catch(() => {}), { once: true })
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
    this.#view?.layOut()
    this.#emit('parley-open', {})
  }

  /** Whether the history is always shown. */
  get #hasSidebar(): boolean {
    return this.#frame !== undefined && !this.#frame.historyButton.isConnected
  }

  #toggleHistory(): void {
    const { history, historyButton } = this.#frame!
    if (!history.hidden) {
      this.#hideHistory(true)
      return
    }
    history.hidden = false
    historyButton.setAttribute('aria-expanded', 'true')
    this.#fillHistory().then(() => history.querySelector<HTMLElement>('button')?.focus())
  }

  /** @param refocus whether the button that opens it is focused */
  #hideHistory(refocus = false): void {
    const { history, historyButton } = this.#frame ?? {}
    if (!history || history.hidden || this.#hasSidebar) return
    history.hidden = true
    historyButton!.setAttribute('aria-expanded', 'false')
    if (refocus) historyButton!.focus()
  }

  async #fillHistory(): Promise<void> {
    const session = this.#session!
    await showHistory(this.#frame!.history, {
      words: this.#words,
      language: this.#language,
      api: session.api,
      current: () => session.id,
      newChat: () => this.newChat(),
      open: (id) => {
        this.#hideHistory()
        this.#view?.follow()
        session.open(id, true).then(() => {
          if (this.#hasSidebar) this.#fillHistory()
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
