/** Has the commands of a page name the server that shows it, the reader's own key, and the ids of earlier replies. */
import { shallowReactive } from 'vue'
import { filled, WRITTEN, WRITTEN_KEY } from './command.js'
import { readersKey } from './key.js'

/** A key where it is sent in a header: commands put none into an address. */
const KEY = new RegExp(`((?:x-typesense-api-key: |Bearer |-u admin:))${WRITTEN_KEY}\\b`, 'gi')

/** Whether a command is still written with the key of the documentation, and would send it. @param {string} command */
export const hasWrittenKey = (command) => command.search(KEY) >= 0

/**
 * The ids of earlier replies by the names that stand for them, until the tab is left.
 * @type {Map<string, string>}
 */
export const ids = shallowReactive(new Map())

/** Names the server and the key. @param {string} command as it is written */
export function named(command) {
  const key = readersKey()
  const here = command.replaceAll(WRITTEN, location.origin)
  return key === '' ? here : here.replace(KEY, (_, before) => before + key)
}

/** Each piece of code as it is written. @type {WeakMap<Node, string>} */
const written = new WeakMap()

/** Writes all code of the page anew: after a page is opened, and when a key or an id becomes known. */
export function nameAll() {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    const code = text.parentElement?.closest('.vp-doc code')
    if (!code) continue
    const before = written.get(text) ?? text.nodeValue ?? ''
    written.set(text, before)
    const now = named(code.closest('.run') ? filled(before, ids) : before)
    if (now !== text.nodeValue) text.nodeValue = now
  }
}

/** @param {[name: string, id: string][]} found in a reply */
export function learn(found) {
  for (const [name, id] of found) ids.set(name, id)
  nameAll()
}
