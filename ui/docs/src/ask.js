/** "Ask about this page": the chat widget, loaded when the first question is asked. */
import { pageKey } from './key.js'

/** @typedef {HTMLElement & { show(): void, ask(question: string): Promise<void> }} Chat */

/** @type {Promise<Chat> | undefined} */
let opening

/** @param {string} page its title */
async function open(page) {
  // An address at run time: esbuild leaves the widget's own script alone.
  const script = '/widget/parley-chat.js'
  await import(script)
  const chat = /** @type {Chat} */ (document.createElement('parley-chat'))
  const attributes = {
    assistant: 'default',
    'api-key': pageKey(),
    mode: 'panel',
    'no-launcher': '',
    heading: 'Ask the documentation',
    welcome: `What do you want to know about “${page}”?`,
  }
  for (const [name, value] of Object.entries(attributes)) chat.setAttribute(name, value)
  document.body.append(chat)
  return chat
}

/**
 * A question as the assistant is asked it. It sees no page, so one that does not name its subject gets the page's title.
 * @param {string} question
 * @param {string} page
 */
export function aboutPage(question, page) {
  const words = (/** @type {string} */ text) => text.toLowerCase().match(/\p{L}{4,}/gu) ?? []
  const said = new Set(words(question))
  const names = words(page).some((word) => said.has(word) || said.has(word.replace(/s$/, '')))
  return names ? question : `${question} (${page.replace(/^The /, '')})`
}

export function mountAsk() {
  const form = document.querySelector('[data-ask-form]')
  const note = document.querySelector('[data-ask-note]')
  if (!(form instanceof HTMLFormElement) || !note) return
  const page = form.dataset.page ?? ''
  const ask = async (/** @type {string} */ question) => {
    if (pageKey() === '') {
      note.textContent = 'Asking needs an API key. Open the console, enter one, and come back.'
      return
    }
    try {
      opening ??= open(page)
      const chat = await opening
      chat.show()
      if (question.trim() !== '') await chat.ask(aboutPage(question.trim(), page))
    } catch {
      opening = undefined
      note.textContent = 'The chat could not be loaded. Is Parley running?'
    }
  }
  document.addEventListener('parley-error', () => {
    note.textContent =
      'This server could not answer. It needs an assistant `default` over the documentation: `npm start` makes one, and so does `npm run deploy -- --sample`.'
  })
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    const field = form.elements.namedItem('question')
    if (!(field instanceof HTMLInputElement)) return
    const question = field.value
    field.value = ''
    ask(question)
  })
  for (const button of document.querySelectorAll('[data-ask]'))
    button.addEventListener('click', () => ask(button.textContent ?? ''))
}
