/** One question with its answer and sources, on the page. */
import { citedAnswer, element, inline, sourceCard, sourcesOf } from './render.js'

/** Keeps the end in view for a reader who is there; one who has scrolled up is left alone. */
function follow() {
  const page = document.documentElement
  const distance = page.scrollHeight - page.scrollTop - page.clientHeight
  if (distance < 160) page.scrollTop = page.scrollHeight
}

let made = 0

/**
 * A question whose answer is still to come, as an element and the ways to fill it.
 * @param {HTMLElement} log where it is put
 * @param {string} question
 */
export function openTurn(log, question) {
  made += 1
  const prefix = `source-${made}`
  const answer = element('div', { class: 'answer', 'aria-busy': 'true' })
  const waiting = element('p', { class: 'waiting' }, 'Searching')
  answer.append(waiting)
  const aside = element('aside', { class: 'sources', 'aria-label': 'Sources' })
  const said = element('h3', { class: 'question' }, question)
  const article = element('article', { class: 'turn' }, said, answer, aside)
  log.append(article)
  article.scrollIntoView({ block: 'start' })
  let text = ''

  return {
    /** @param {string} piece */
    write(piece) {
      text += piece
      answer.replaceChildren(...inline(text))
      follow()
    },
    /** @param {string} message @param {boolean} [isWanted] somebody stopped it, and nothing is wrong */
    fail(message, isWanted = false) {
      waiting.remove()
      const kind = isWanted ? { class: 'note', role: 'status' } : { class: 'error', role: 'alert' }
      answer.append(element('p', kind, message))
      answer.setAttribute('aria-busy', 'false')
      follow()
    },
    /**
     * @param {{ answer: string, citations: import('./render.js').Citation[], usage?: { model: string } | undefined,
     *   documents: Record<string, unknown>[] }} finished
     */
    finish({ answer: whole, citations, usage, documents }) {
      const sources = sourcesOf(documents, citations)
      answer.replaceChildren(
        ...citedAnswer(whole, citations, sources, (source) => reveal(article, prefix, source.number)),
      )
      answer.setAttribute('aria-busy', 'false')
      fillSources(aside, sources, prefix)
      if (usage?.model) answer.append(element('p', { class: 'note' }, `Answered by ${usage.model}`))
      follow()
    },
  }
}

/**
 * Cited sources first; the rest of what was found on demand.
 * @param {HTMLElement} aside
 * @param {import('./render.js').Source[]} sources
 * @param {string} prefix
 */
function fillSources(aside, sources, prefix) {
  if (sources.length === 0) {
    aside.append(element('p', { class: 'note' }, 'Nothing was found for this question.'))
    return
  }
  const used = sources.filter((source) => source.cited)
  const shown = used.length > 0 ? used : sources.slice(0, 3)
  const others = sources.filter((source) => !shown.includes(source))
  aside.append(element('h4', {}, used.length > 0 ? 'Sources' : 'Found'))
  aside.append(element('ol', { class: 'cards' }, ...shown.map((source) => sourceCard(source, prefix))))
  if (others.length > 0) {
    const list = element('ol', { class: 'cards' }, ...others.map((source) => sourceCard(source, prefix)))
    aside.append(element('details', {}, element('summary', {}, `${others.length} more found`), list))
  }
}

/**
 * Takes the reader to a source.
 * @param {HTMLElement} article
 * @param {string} prefix
 * @param {number} number
 */
function reveal(article, prefix, number) {
  const card = document.getElementById(`${prefix}-${number}`)
  if (card === null) return
  for (const lit of article.querySelectorAll('.lit')) lit.classList.remove('lit')
  card.classList.add('lit')
  for (const part of article.querySelectorAll(`[data-source="${number}"]`)) part.classList.add('lit')
  card.scrollIntoView({ block: 'nearest', behavior: 'smooth' })
  card.focus({ preventScroll: true })
}
