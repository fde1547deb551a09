/** What is asked: an assistant, or a collection by way of a conversation model. Kept in the tab, and named by a link. */
import { signal } from '@preact/signals'

export interface ChatSettings {
  /** '' where a collection and a model are asked directly */
  assistant: string
  collection: string
  model: string
  /** fields to search; '' for all */
  fields: string
  followups: boolean
}

const DEFAULTS: ChatSettings = {
  assistant: '',
  collection: 'docs',
  model: 'docs',
  fields: '',
  followups: false,
}
const NAMES = ['assistant', 'collection', 'model', 'fields'] as const

/** Whether somebody has chosen, so that nothing is chosen for them. */
export let chosen = false

function load(): ChatSettings {
  const settings = { ...DEFAULTS }
  // A key in an address would end up in histories and logs: it is not among the names.
  const given = new URLSearchParams(location.search)
  for (const name of NAMES) {
    const value = given.get(name) ?? sessionStorage.getItem(`parley.${name}`)
    if (value === null) continue
    settings[name] = value
    chosen = true
  }
  settings.followups = sessionStorage.getItem('parley.followups') === 'true'
  return settings
}

export const settings = signal(load())

export function choose(next: ChatSettings): void {
  chosen = true
  for (const name of NAMES) sessionStorage.setItem(`parley.${name}`, next[name])
  sessionStorage.setItem('parley.followups', String(next.followups))
  settings.value = next
}
