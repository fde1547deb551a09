/** What is asked: an assistant, or a collection by way of a conversation model. Kept in the tab, and named by a link. */
import { signal } from '@preact/signals'
import { many } from '../parts/format'

export interface ChatSettings {
  /** '' where a collection and a model are asked directly */
  assistant: string
  collection: string
  model: string
  /** fields to search; '' for all */
  fields: string
  /** the most documents of a search; '' for its own default */
  limit: string
  /** `filter_by` of the searches; '' for none */
  filter: string
  followups: boolean
}

const DEFAULTS: ChatSettings = {
  assistant: '',
  collection: 'docs',
  model: 'docs',
  fields: '',
  limit: '',
  filter: '',
  followups: false,
}
const NAMES = ['assistant', 'collection', 'model', 'fields', 'limit', 'filter'] as const

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

/** The request that asks with these settings, without its question: its path, and its body's other properties. */
export function requestOf({ assistant, collection, model, fields, limit, filter, followups }: ChatSettings) {
  const suggests = followups && { followups }
  if (assistant !== '')
    return { path: `/a/${encodeURIComponent(assistant)}/conversations`, body: { ...suggests } }
  const body = {
    model,
    ...(fields === '' ? { collections: [collection] } : { searches: [{ collection, query_by: fields }] }),
    ...(limit !== '' && { per_page: Number(limit) }),
    ...(filter !== '' && { filter_by: filter }),
    ...suggests,
  }
  return { path: '/conversations', body }
}

/** Settings in a few words. */
export function described({ assistant, collection, model, fields, limit, filter }: ChatSettings): string {
  if (assistant !== '') return `the assistant ${assistant}`
  const more = [
    fields && `fields ${fields}`,
    limit && many(Number(limit), 'document'),
    filter && `only ${filter}`,
  ]
  return [model, collection, ...more].filter(Boolean).join(' · ')
}

export function choose(next: ChatSettings): void {
  chosen = true
  for (const name of NAMES) sessionStorage.setItem(`parley.${name}`, next[name])
  sessionStorage.setItem('parley.followups', String(next.followups))
  settings.value = next
}
