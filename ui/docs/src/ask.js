/** The chat widget over the documentation, loaded when the first question is asked. */
import { pageKey } from './key.js'

/** @typedef {HTMLElement & { show(): void, ask(question: string): Promise<void> }} Chat */

/** @type {Promise<Chat> | undefined} */
let opening

/** @param {(said: string) => void} note */
async function open(note) {
  // An address at run time: the widget's own script is no part of the documentation's.
  const script = '/widget/parley-chat.js'
  await import(/* @vite-ignore */ script)
  const chat = /** @type {Chat} */ (document.createElement('parley-chat'))
  const attributes = {
    assistant: 'default',
    'api-key': pageKey(),
    mode: 'panel',
    'no-launcher': '',
    heading: 'Ask the documentation',
    welcome: 'What do you want to know about Parley?',
  }
  for (const [name, value] of Object.entries(attributes)) chat.setAttribute(name, value)
  // A slash that is typed in a question opens no search.
  chat.addEventListener('keydown', (event) => event.key === '/' && event.stopPropagation())
  document.addEventListener('parley-error', () =>
    note(
      'This server could not answer. It needs an assistant `default` over the documentation: `npm start` makes one, and so does `npm run deploy -- --sample`.',
    ),
  )
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

/**
 * Asks in the chat, or only shows it where there is no question.
 * @param {string} question
 * @param {string} page its title
 * @param {(said: string) => void} note takes why there is no answer, as a sentence for the reader
 */
export async function ask(question, page, note) {
  if (pageKey() === '') return note('Asking needs an API key. Open the console, enter one, and come back.')
  try {
    opening ??= open(note)
    const chat = await opening
    chat.show()
    if (question.trim() !== '') await chat.ask(aboutPage(question.trim(), page))
  } catch {
    opening = undefined
    note('The chat could not be loaded. Is Parley running?')
  }
}
