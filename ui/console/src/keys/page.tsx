/** API keys: the list, a key for a page or a search, whose value is shown once, and what can change of a key. */

import { useState } from 'preact/hooks'
import { snippet } from '../../../../scripts/parley/commands/init.mjs'
import { to } from '../address'
import { mapped, send, useRead } from '../api'
import type { Assistant } from '../chat/choices'
import { Secret } from '../parts/button'
import {
  Dialog,
  type Draft,
  Form,
  FormDialog,
  given,
  namesIn,
  numberIn,
  optionsOf,
  SecretDialog,
  SelectField,
  useDraft,
} from '../parts/form'
import { many, when } from '../parts/format'
import { ListPage } from '../parts/list'
import { Badges } from '../parts/page'

export interface Key {
  id: number
  description: string
  actions: string[]
  collections: string[]
  value_prefix?: string
  /** in seconds since 1970 */
  expires_at: number
  limits?: { assistant?: string; allowed_origins?: string[]; turns_per_day?: number; tokens_per_day?: number }
}

/** Past this a key counts as one without an end. */
const NEVER = 4_000_000_000
const DAY_S = 86_400

export default function Keys() {
  const list = useRead<{ keys: Key[] }>('/keys')
  return (
    <ListPage
      title="Keys"
      lead="A key for a page may ask one assistant and nothing else. Never put the admin key into a page."
      list={mapped(list, ({ keys }) => keys)}
      empty={{
        icon: 'keys',
        title: 'No keys yet',
        text: 'Besides the admin key there is none. Make one for each page and program that asks.',
      }}
      kind="key"
      form={(close) => <NewKey close={close} />}
      edit={(each, close) => <EditKey of={each} close={close} />}
      item={({ id, description, value_prefix, actions, collections, expires_at: ends, limits = {} }) => ({
        name: description || `Key ${id}`,
        called: description || String(id),
        about: (
          <>
            <code>{value_prefix}…</code> · {actions.join(', ')} on {collections.join(', ')}
            {ends < NEVER && ` · until ${when(ends * 1_000)}`}
          </>
        ),
        path: `/keys/${id}`,
        what: 'this key',
        says: `Pages and programs that use “${description || id}” are refused within seconds.`,
        children: (
          <>
            {limits.assistant !== undefined && <span class="badge good">page of {limits.assistant}</span>}
            <Badges
              of={[
                limits.turns_per_day !== undefined && `${many(limits.turns_per_day, 'question')} a day`,
                limits.tokens_per_day !== undefined && `${many(limits.tokens_per_day, 'token')} a day`,
                ...(limits.allowed_origins ?? []),
              ]}
            />
          </>
        ),
      })}
    />
  )
}

const inSeconds = (days: string): number | undefined =>
  days === '' ? undefined : Math.floor(Date.now() / 1_000) + Number(days) * DAY_S

/** What can change of a key. What it may do, and where, stays: others hold it for that. */
function EditKey({ of, close }: { of: Key; close: () => void }) {
  const { id, description, expires_at: ends, limits = {} } = of
  const { draft, text } = useDraft({
    description,
    origins: limits.allowed_origins?.join(' ') ?? '',
    turns: String(limits.turns_per_day ?? ''),
    tokens: String(limits.tokens_per_day ?? ''),
    days: '',
  })
  const save = async () => {
    await send('PATCH', `/keys/${id}`, {
      description: draft.description,
      expires_at: inSeconds(draft.days),
      limits: {
        turns_per_day: numberIn(draft.turns) ?? null,
        tokens_per_day: numberIn(draft.tokens) ?? null,
        ...given({ allowed_origins: namesIn(draft.origins) }),
      },
    })
  }
  return (
    <FormDialog title="Edit the key" save={save} close={close}>
      {text('description', 'Description')}
      {limits.assistant !== undefined &&
        text('origins', 'Allowed websites', {
          placeholder: 'all, or https://www.example.com',
          required: limits.allowed_origins !== undefined,
        })}
      <Limits text={text} days={ends < NEVER ? `until ${when(ends * 1_000)}` : 'never'} />
    </FormDialog>
  )
}

type LimitName = 'turns' | 'tokens' | 'days'

/** @param days what stands for the days until it expires while nothing is written there */
const Limits = ({ text, days }: Pick<Draft<Record<LimitName, string>>, 'text'> & { days: string }) => (
  <>
    {text('turns', 'Questions per day', { type: 'number', min: '1', placeholder: 'no limit' })}
    {text('tokens', 'Tokens per day', { type: 'number', min: '1', placeholder: 'no limit' })}
    {text('days', 'Expires after days', { type: 'number', min: '1', placeholder: days })}
  </>
)

const KINDS = [
  ['page', 'A page: asks one assistant'],
  ['search', 'A program: searches and converses'],
] as const

function NewKey({ close }: { close: () => void }) {
  const assistants = useRead<{ assistants: Assistant[] }>('/assistants')
  const [kind, setKind] = useState<(typeof KINDS)[number][0]>('page')
  const { draft, set, text } = useDraft({
    description: '',
    assistant: '',
    scope: '',
    turns: '',
    tokens: '',
    days: '',
  })
  const [value, setValue] = useState<string>()
  const names = assistants.data?.assistants.map(({ name }) => name) ?? []
  const chosen = draft.assistant || names[0] || ''
  const isPage = kind === 'page'
  const usual = isPage ? `page of ${chosen}` : 'search only'
  const save = async () => {
    const scope = namesIn(draft.scope)
    const made = await send<{ value: string }>(
      'POST',
      '/keys',
      given({
        actions: ['documents:search'],
        description: draft.description || usual,
        collections: isPage || scope.length === 0 ? ['*'] : scope,
        expires_at: inSeconds(draft.days),
        limits: given({
          ...(isPage && { assistant: chosen, allowed_origins: scope }),
          turns_per_day: numberIn(draft.turns),
          tokens_per_day: numberIn(draft.tokens),
        }),
      }),
    )
    setValue(made.value)
  }
  if (value !== undefined)
    return (
      <SecretDialog
        title="Your new key"
        text={value}
        of="key"
        says="Parley keeps only a hash of it."
        close={close}
      >
        {isPage && (
          <>
            <p>Paste this into your page:</p>
            <Secret text={snippet(location.origin, chosen, value)} of="snippet" />
          </>
        )}
      </SecretDialog>
    )
  return (
    <Dialog title="New key" close={close}>
      <Form action="Create key" disabled={isPage && chosen === ''} save={save}>
        <fieldset class="choices">
          <legend class="field-label">What is it for?</legend>
          {KINDS.map(([each, says]) => (
            <label key={each} class="check line">
              <input type="radio" name="kind" checked={kind === each} onChange={() => setKind(each)} />
              {says}
            </label>
          ))}
        </fieldset>
        {isPage && (
          <SelectField
            label="Assistant"
            required
            value={chosen}
            options={optionsOf(names)}
            hint={
              assistants.data &&
              names.length === 0 && (
                <>
                  There is no assistant yet. <a href={to(['assistants', 'new'])}>Make one first</a>.
                </>
              )
            }
            change={(assistant) => set({ assistant })}
          />
        )}
        {text('scope', isPage ? 'Allowed websites' : 'Collections', {
          placeholder: isPage ? 'all, or https://www.example.com' : 'all, or names with commas',
        })}
        {text('description', 'Description', { placeholder: usual })}
        <details>
          <summary>Limits</summary>
          <Limits text={text} days="never" />
        </details>
      </Form>
    </Dialog>
  )
}
