/** What is shown before anything was asked. */
import { h, icon } from './dom'
import type { Words } from './words'

const MOST_QUESTIONS = 6

export function fillWelcome(
  element: HTMLElement,
  words: Words,
  title: string,
  questions: readonly string[],
  ask: (question: string) => void,
): void {
  const items = questions.slice(0, MOST_QUESTIONS).map((text) => {
    const attributes = { type: 'button', class: 'suggestion', part: 'suggestion', dir: 'auto' }
    return h('li', {}, h('button', { ...attributes, onclick: () => ask(text) }, text))
  })
  element.replaceChildren(
    h('div', { class: 'welcome-mark' }, icon('spark')),
    h('p', { class: 'welcome-title', dir: 'auto' }, title),
    h('p', { class: 'welcome-hint' }, words.hint),
  )
  if (items.length > 0) element.append(h('ul', { class: 'first-questions' }, ...items))
}
