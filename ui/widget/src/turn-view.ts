/** A question with its answer, as elements. */
import { type BlockOptions, Blocks } from './blocks'
import { CallsView } from './calls'
import { Check } from './check'
import { h, icon, iconButton } from './dom'
import { type Evidence, saysOf } from './evidence'
import { type FeedbackHost, FeedbackView } from './feedback-view'
import type { Markdown } from './markdown'
import { lastSentence, markAnswer, type Source, shownPart, withMarks, withoutMarks } from './sources'
import { isRunning, type Turn } from './turn'
import type { SentenceSupport, TurnFault } from './wire'
import { FAULTS, type Words } from './words'

/** What a turn asks of the widget. */
export interface TurnHost extends Partial<Pick<FeedbackHost, 'rate'>> {
  words: Words
  markdown(): Markdown | undefined
  ask(question: string, replaces?: Turn): void
  /** goes on with a turn whose calls wait for the visitor */
  decide(turn: Turn, isAllowed: boolean): void
  /**
   * Has an element show a passage when it is pressed.
   * @param peeks whether it does when it is pointed at or focused, too
   */
  cite(opener: HTMLElement, evidence: () => Evidence, peeks: boolean): void
  copied(text: string, button: HTMLButtonElement): void
  colour?: BlockOptions['colour']
  /** says something to whoever listens */
  say(text: string): void
  isLast(turn: Turn): boolean
  busy(): boolean
  /** shows another version of a turn */
  show(turn: Turn, version: number): void
}

/** The sentence before a digit; all that its paragraph says where the digit stands first. */
function saidBefore(digit: Element): string {
  const block = digit.closest('p, li, td, th, h1, h2, h3, h4')
  if (!block) return ''
  const range = document.createRange()
  range.setStart(block, 0)
  range.setEndBefore(digit)
  const before = range.cloneContents()
  for (const earlier of before.querySelectorAll('.cite')) earlier.remove()
  return lastSentence(before.textContent ?? '') || (block.textContent ?? '')
}

export class TurnView {
  readonly element: HTMLElement
  readonly #turn: Turn
  readonly #host: TurnHost
  readonly #question = h('div', { class: 'question-text', part: 'question', dir: 'auto' })
  readonly #asked: HTMLElement
  /** who answered: the name of a person is seen */
  readonly #author = h('h3', { class: 'hidden' })
  readonly #sources = h('div', { class: 'sources', part: 'sources', hidden: true })
  readonly #status = h('p', { class: 'status', hidden: true })
  readonly #problem = h('div', { class: 'problem', part: 'error', hidden: true })
  readonly #tools = h('div', { class: 'tools', hidden: true })
  readonly #followups = h('div', { class: 'followups', hidden: true })
  readonly #blocks: Blocks
  readonly #calls: CallsView
  readonly #check: Check
  /** absent where answers are not rated */
  readonly #feedback: FeedbackView | undefined
  #sourcesShown = ''
  #state = ''
  #shown = ''
  #titles = ''

  constructor(turn: Turn, host: TurnHost) {
    this.#turn = turn
    this.#host = host
    const { words } = host
    this.#blocks = new Blocks({
      words,
      cite: (number, citation) => this.#digit(number, citation),
      copy: host.copied,
      colour: host.colour,
    })
    this.#calls = new CallsView(turn, words, (isAllowed) => host.decide(turn, isAllowed))
    this.#check = new Check(turn, this.#blocks.element, host, (sentence) => this.#doubt(sentence))
    const { rate } = host
    this.#feedback = rate && new FeedbackView(turn, { words, rate, say: host.say })
    const edit = iconButton('edit', words.edit, () => this.#edit(), { class: 'tool edit' })
    this.#asked = h('div', { class: 'asked' }, h('h3', { class: 'hidden' }, words.you), this.#question, edit)
    const { files = [] } = turn
    const names = files.map(({ name }) => h('li', { class: 'file', dir: 'auto' }, name))
    this.element = h(
      'article',
      { class: 'turn', part: 'turn' },
      this.#asked,
      names.length > 0 && h('ul', { class: 'files', 'aria-label': words.attached }, ...names),
      this.#author,
      this.#sources,
      this.#status,
      this.#blocks.element,
      this.#calls.element,
      this.#problem,
      this.#tools,
      this.#check.note,
      ...(this.#feedback ? [this.#feedback.element] : []),
      this.#followups,
    )
    this.update()
  }

  update(): void {
    const { question, state, sources, citations, answer, reconnecting, author } = this.#turn
    const { words } = this.#host
    const running = isRunning(this.#turn)
    this.#asked.hidden = author !== undefined
    this.#author.className = author === undefined ? 'hidden' : 'author'
    this.#author.textContent = author ?? words.answer
    if (this.#question.textContent !== question) this.#question.textContent = question
    this.#showSources()
    this.#status.hidden = !reconnecting && state !== 'searching' && state !== 'reading'
    this.#status.textContent = reconnecting
      ? words[navigator.onLine ? 'reconnecting' : 'away']
      : words[state === 'searching' ? 'searching' : sources.length > 0 ? 'reading' : 'writing']
    this.element.classList.toggle('running', running)
    this.element.setAttribute('aria-busy', String(running))
    const ended = !running
    const text = ended ? markAnswer(answer, citations, sources) : withMarks(shownPart(answer), sources)
    const markdown = this.#host.markdown()
    const titles = sources.map(({ title }) => title).join('\n')
    const shown = `${ended} ${markdown !== undefined} ${text}`
    if (shown !== this.#shown || titles !== this.#titles) {
      // Digits that are there already would go on calling their sources by other names.
      if (titles !== this.#titles) this.#blocks.reset()
      this.#titles = titles
      this.#shown = shown
      if (text !== '' || ended) this.#check.around(() => this.#blocks.update(text, markdown, ended))
    }
    this.#calls.update(this.#host.isLast(this.#turn) && !this.#host.busy())
    this.#feedback?.update()
    for (const spoken of this.#blocks.spoken.splice(0)) this.#host.say(spoken)
    this.#showEnd()
  }

  /** Puts what was found into one line, so that nothing below it moves when more is known of it. */
  #showSources(): void {
    const { sources, citations, state } = this.#turn
    const { words } = this.#host
    const cited = new Set(this.#citedNumbers())
    const key = JSON.stringify([sources.map(({ title }) => title), citations.length, state === 'done'])
    if (key === this.#sourcesShown) return
    this.#sourcesShown = key
    this.#sources.hidden = sources.length === 0
    const settled = state === 'done' && cited.size > 0
    const chips = sources.map((source) => {
      const dim = settled && !cited.has(source.number)
      const chip = h(
        'button',
        {
          type: 'button',
          class: dim ? 'chip dim' : 'chip',
          'aria-haspopup': 'dialog',
          'aria-expanded': 'false',
        },
        h('span', { class: 'number' }, String(source.number)),
        h('span', { class: 'chip-title', dir: 'auto' }, source.title),
      )
      const { question: sentence } = this.#turn
      this.#host.cite(chip, () => ({ source, quote: this.#quoteOf(source), sentence }), false)
      return h('li', {}, chip)
    })
    this.#sources.replaceChildren(
      h('ul', { class: 'chips', 'aria-label': words.sources, tabindex: -1 }, ...chips),
    )
  }

  #citedNumbers(): number[] {
    const { sources, citations } = this.#turn
    return citations.flatMap(({ collection, document_id: id }) => {
      const source = sources.find((each) => each.collection === collection && each.documentId === id)
      return source ? [source.number] : []
    })
  }

  #quoteOf({ collection, documentId }: Source): string | undefined {
    return this.#turn.citations.find(
      ({ collection: in_, document_id: id, quote }) => in_ === collection && id === documentId && quote,
    )?.quote
  }

  #digit(number: number, citation: number | undefined): HTMLElement {
    const source = this.#turn.sources[number - 1]
    if (!source) return h('span')
    const { words } = this.#host
    const digit = h(
      'button',
      {
        type: 'button',
        class: 'cite',
        part: 'citation',
        // Another citation of the same source is another button.
        'data-citation': citation,
        'aria-label': `${words.source} ${number}: ${source.title}`,
        'aria-haspopup': 'dialog',
        'aria-expanded': 'false',
      },
      h('span', { 'aria-hidden': 'true' }, String(number)),
    )
    const evidence = () => ({
      source: this.#turn.sources[number - 1] ?? source,
      quote: citation === undefined ? undefined : this.#turn.citations[citation]?.quote,
      sentence: saidBefore(digit),
      support: this.#check.at(digit),
    })
    this.#host.cite(digit, evidence, true)
    return digit
  }

  /** Stands behind a sentence that the sources do not support. */
  #doubt(support: SentenceSupport): HTMLElement {
    const mark = h(
      'button',
      {
        type: 'button',
        class: 'cite doubt',
        'aria-label': saysOf(support, this.#host.words)[0],
        'aria-haspopup': 'dialog',
        'aria-expanded': 'false',
      },
      h('span', { 'aria-hidden': 'true' }, '?'),
    )
    this.#host.cite(mark, () => ({ sentence: '', support }), true)
    return mark
  }

  #showEnd(): void {
    const { state, error, followups, answer, isPast = false, versions = [], author } = this.#turn
    const { words, isLast, busy } = this.#host
    const last = isLast(this.#turn)
    const key = JSON.stringify([state, error, followups, last, busy(), versions])
    if (key === this.#state) return
    this.#state = key
    const ended = state === 'done' || state === 'stopped' || state === 'failed'
    const askAgain = () => this.#host.ask(this.#turn.question, this.#turn)
    this.#asked.querySelector<HTMLButtonElement>('.edit')!.hidden = busy() || isPast
    const failed = state === 'failed' || state === 'stopped'
    this.#problem.hidden = !failed
    this.#problem.replaceChildren()
    if (failed) {
      const retry = h(
        'button',
        { type: 'button', class: 'retry', onclick: askAgain },
        icon('again'),
        words.retry,
      )
      this.#problem.append(h('p', {}, this.#whatHappened()), retry)
      this.#problem.classList.toggle('calm', state === 'stopped')
    }
    this.#tools.hidden = !ended || answer === '' || failed
    const copy = iconButton('copy', words.copy, () =>
      this.#host.copied(withoutMarks(answer, this.#turn.sources), copy),
    )
    this.#tools.replaceChildren(copy, ...(this.#turn.support.length > 0 ? [this.#check.button] : []))
    if (author === undefined) {
      if (!busy() && !isPast) this.#tools.append(iconButton('again', words.regenerate, askAgain))
      this.#tools.append(...(this.#feedback?.buttons ?? []), ...(busy() ? [] : this.#versions()))
    }
    this.#followups.hidden = followups.length === 0 || !last || state !== 'done' || isPast
    this.#followups.replaceChildren(
      h('p', { class: 'followups-title', id: undefined }, words.followups),
      ...followups.map((text) =>
        h(
          'button',
          {
            type: 'button',
            class: 'followup',
            part: 'suggestion',
            dir: 'auto',
            onclick: () => this.#host.ask(text),
          },
          icon('next'),
          h('span', {}, text),
        ),
      ),
    )
  }

  /** Buttons to the versions before and after this one, with its place between them. */
  #versions(): HTMLElement[] {
    const { number = 0, versions = [] } = this.#turn
    const at = versions.indexOf(number)
    if (versions.length < 2 || at < 0) return []
    const { words } = this.#host
    const button = (name: 'older' | 'newer', to: number | undefined) => {
      const made = iconButton(name, words[name], () => to !== undefined && this.#host.show(this.#turn, to))
      made.disabled = to === undefined
      return made
    }
    return [
      button('older', versions[at - 1]),
      h('span', { class: 'version' }, `${at + 1}/${versions.length}`),
      button('newer', versions[at + 1]),
    ]
  }

  #whatHappened(): string {
    const { state, error: { status, message, code } = { status: 0, message: '' } as TurnFault } = this.#turn
    const { words } = this.#host
    if (state === 'stopped') return words.stopped
    if (status === 0) return words.offline
    const said = FAULTS[code ?? '']
    if (said) return words[said]
    if (status === 401 || status === 403) return words.refused
    if (status === 429) return words.busy
    return message ? `${words.failed} ${message}` : words.failed
  }

  /** Puts a field in the place of the question. */
  #edit(): void {
    const { words } = this.#host
    const field = h('textarea', { 'aria-label': words.editing, rows: 2, dir: 'auto' })
    field.value = this.#turn.question
    const done = () => {
      form.replaceWith(this.#asked)
      this.#asked.querySelector<HTMLElement>('.edit')?.focus()
    }
    const form = h(
      'form',
      {
        class: 'editing',
        onsubmit: (event: Event) => {
          event.preventDefault()
          const question = field.value.trim()
          if (question === '') return
          done()
          this.#host.ask(question, this.#turn)
        },
        onkeydown: (event: KeyboardEvent) => {
          if (event.isComposing) return
          if (event.key === 'Escape') {
            event.preventDefault()
            event.stopPropagation()
            done()
          } else if (event.key === 'Enter' && !event.shiftKey) {
            event.preventDefault()
            form.requestSubmit()
          }
        },
      },
      field,
      h(
        'div',
        { class: 'editing-buttons' },
        h('button', { type: 'button', class: 'quiet', onclick: done }, words.cancel),
        h('button', { type: 'submit', class: 'primary' }, words.send),
      ),
    )
    this.#asked.replaceWith(form)
    field.focus()
    field.select()
  }
}
