/** What is asked: an assistant, or a collection by way of a conversation model. Kept in the tab, and named by a link. */
import { signal } from '@preact/signals'
import { conversationAt, place } from '../address'
import { type Draft, FormDialog, useDraft } from '../parts/form'
import { many } from '../parts/format'
import type { Chat } from './chat'
import type { Choices } from './choices'

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
  /** of a conversation that searched several collections: they stand for one collection, its filter and limit */
  searches?: OwnSearch[]
}

/** A search of a conversation, with what it was narrowed by. */
export interface OwnSearch {
  collection: string
  filter_by?: string
  per_page?: string
}

/** A collection that is asked directly: with nothing of its own yet. */
export const DIRECT: ChatSettings = {
  assistant: '',
  collection: '',
  model: '',
  fields: '',
  limit: '',
  filter: '',
  followups: false,
}
const DEFAULTS: ChatSettings = { ...DIRECT, collection: 'docs', model: 'docs' }
const NAMES = ['assistant', 'collection', 'model', 'fields', 'limit', 'filter'] as const

/** Whether somebody has chosen, so that nothing is chosen for them. */
export let chosen = false
/** the conversation that the address of the tab named beside a choice, when it was opened: the choice is for it too */
export let chosenFor: string | undefined

function load(): ChatSettings {
  const settings = { ...DEFAULTS }
  // A key in an address would end up in histories and logs: it is not among the names.
  const given = new URLSearchParams(location.search)
  for (const name of NAMES) {
    const value = given.get(name) ?? sessionStorage.getItem(`parley.${name}`)
    if (value === null) continue
    settings[name] = value
    chosen = true
    if (given.has(name)) chosenFor = conversationAt(place.peek())
  }
  settings.followups = sessionStorage.getItem('parley.followups') === 'true'
  return settings
}

export const settings = signal(load())

/** The request that asks with these settings, without its question: its path, and its body's other properties. */
export function requestOf(asked: ChatSettings) {
  const { assistant, collection, model, fields, limit, filter, followups, searches } = asked
  const suggests = followups && { followups }
  if (assistant !== '')
    return { path: `/a/${encodeURIComponent(assistant)}/conversations`, body: { ...suggests } }
  const body = {
    model,
    ...(fields === '' && !searches
      ? { collections: [collection] }
      : { searches: searches ?? [{ collection, query_by: fields }] }),
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

/** Settings as a sentence goes on after "Asking". */
export function inSentence(asked: ChatSettings): string {
  const { assistant, collection, model, fields, limit, filter, searches } = asked
  if (assistant !== '') return `the assistant ${assistant}`
  const names = searches?.map((search) => search.collection) ?? [collection]
  const filters = searches ? searches.flatMap(({ filter_by }) => filter_by ?? []) : filter && [filter]
  const more = [
    fields && `in ${fields}`,
    limit && `at most ${many(Number(limit), 'document')}`,
    ...[...new Set(filters)].map((each) => `only ${each}`),
  ]
  const what = `${names.length === 1 ? 'the collection' : 'the collections'} ${names.join(', ')}`
  return [`${what} with the model ${model}`, ...more].filter(Boolean).join(', ')
}

/** What a change makes of settings: to change one collection replaces several. */
function changed({ searches, ...before }: ChatSettings, part: Partial<ChatSettings>): ChatSettings {
  const keeps = searches && Object.keys(part).every((name) => name === 'followups' || name === 'model')
  return { ...before, ...(keeps && { searches }), ...part }
}

/** Has the tab ask with these settings. What an opened conversation searched besides goes with that conversation. */
export function choose({ searches: _, ...next }: ChatSettings): void {
  chosen = true
  for (const name of NAMES) sessionStorage.setItem(`parley.${name}`, next[name])
  sessionStorage.setItem('parley.followups', String(next.followups))
  settings.value = next
}

// =============================================================================
// What is asked: chosen from what the key may list, and otherwise typed. The same in the chat, beside an answer, and for a set of questions.

interface DialogProps {
  chat: Chat
  choices: Choices
  close: () => void
}

export function SettingsDialog({ chat, choices, close }: DialogProps) {
  const own = chat.own.value
  const asked = useDraft<ChatSettings>(own?.settings ?? settings.value, changed)
  const { draft, check } = asked
  const begins = chat.beginsWith(draft, choices)
  return (
    <FormDialog
      title="Chat settings"
      action={begins ? 'Apply in a new conversation' : 'Apply'}
      save={async () => chat.choose(draft, choices)}
      close={close}
    >
      <SettingsFields choices={choices} of={asked} />
      {check('followups', 'Suggest what to ask next')}
      <p class="hint" role="status">
        {begins &&
          own &&
          `The open conversation goes to ${inSentence(own.settings)}, and cannot go on with another history. A new one begins.`}
      </p>
    </FormDialog>
  )
}

interface FieldsProps {
  choices: Choices
  of: Draft<ChatSettings>
}

/** The fields of what is asked: the same in the chat, beside an answer, and for a set of questions. */
export const SettingsFields = ({ choices, of: { draft, text, choice } }: FieldsProps) => (
  <>
    {choices.assistants &&
      choices.assistants.length > 0 &&
      choice(
        'assistant',
        'Ask',
        [
          ['', 'A collection directly'],
          ...choices.assistants.map(({ name }) => [name, `The assistant ${name}`] as const),
        ],
        { hint: 'An assistant brings its own collections, model and instructions.' },
      )}
    {draft.assistant === '' && (
      <>
        {text('collection', 'Collection', {
          options: choices.collections?.map(({ name }) => name) ?? [],
          required: true,
        })}
        {text('model', 'Conversation model', {
          options: choices.models?.map(({ id }) => id) ?? [],
          required: true,
        })}
        {text('fields', 'Fields to search', {
          placeholder: 'all that can be searched',
          hint: 'Names separated by commas, such as title,text.',
        })}
        {text('limit', 'Documents per search', { type: 'number', min: '1', max: '250', placeholder: '10' })}
        {text('filter', 'Filter', { placeholder: 'tags:=guide' })}
      </>
    )}
  </>
)
