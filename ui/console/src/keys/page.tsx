/** API keys: the list, a key for a page or a search, whose value is shown once, and what can change of a key. */

import { useState } from 'preact/hooks'
import { to } from '../address'
import { mapped, send, useRead } from '../api'
import type { Assistant } from '../chat/choices'
import { Button, Copy } from '../parts/button'
import { Dialog, type Draft, Form, FormDialog, optionsOf, SelectField, useDraft } from '../parts/form'
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

const numberOr = (text: string): number | null => (text === '' ? null : Number(text))
const inSeconds = (days: string): number => Math.floor(Date.now() / 1_000) + Number(days) * DAY_S

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
  const origins = wordsOf(draft.origins)
  const save = async () => {
    await send('PATCH', `/keys/${id}`, {
      description: draft.description,
      ...(draft.days !== '' && { expires_at: inSeconds(draft.days) }),
      limits: {
        turns_per_day: numberOr(draft.turns),
        tokens_per_day: numberOr(draft.tokens),
        ...(origins.length > 0 && { allowed_origins: origins }),
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

const wordsOf = (text: string): string[] => text.split(/[\s,]+/).filter(Boolean)

function NewKey({ close }: { close: () => void }) {
  const assistants = useRead<{ assistants: Assistant[] }>('/assistants')
  const [kind, setKind] = useState<'page' | 'search'>('page')
  const { draft, set, text } = useDraft({
    description: '',
    assistant: '',
    scope: '',
    turns: '',
    tokens: '',
    days: '',
  })
  const { description, assistant, scope, turns, tokens, days } = draft
  const [value, setValue] = useState<string>()
  const names = assistants.data?.assistants.map(({ name }) => name) ?? []
  const chosen = assistant || names[0] || ''
  const words = wordsOf(scope)
  const budget = {
    ...(turns !== '' && { turns_per_day: Number(turns) }),
    ...(tokens !== '' && { tokens_per_day: Number(tokens) }),
  }
  const save = async () => {
    const body = {
      actions: ['documents:search'],
      ...(days !== '' && { expires_at: inSeconds(days) }),
      ...(kind === 'page'
        ? {
            description: description || `page of ${chosen}`,
            collections: ['*'],
            limits: { assistant: chosen, ...(words.length > 0 && { allowed_origins: words }), ...budget },
          }
        : {
            description: description || 'search only',
            collections: words.length > 0 ? words : ['*'],
            ...(Object.keys(budget).length > 0 && { limits: budget }),
          }),
    }
    setValue((await send<{ value: string }>('POST', '/keys', body)).value)
  }
  if (value !== undefined) {
    const snippet = `<script type="module" src="${location.origin}/widget/parley-chat.js"></script>\n<parley-chat assistant="${chosen}" key="${value}"></parley-chat>`
    return (
      <Dialog title="Your new key" close={close}>
        <div class="dialog-body form">
          <p>Copy it now: it is not shown again. Parley keeps only a hash of it.</p>
          <div class="secret line">
            <code class="grow">{value}</code>
            <Copy text={value} label="Copy the key" />
          </div>
          {kind === 'page' && (
            <>
              <p>Paste this into your page:</p>
              <div class="secret line">
                <code class="grow">{snippet}</code>
                <Copy text={snippet} label="Copy the snippet" />
              </div>
            </>
          )}
          <div class="dialog-foot line">
            <Button label="Done" kind="primary" onClick={close} />
          </div>
        </div>
      </Dialog>
    )
  }
  return (
    <Dialog title="New key" close={close}>
      <Form action="Create key" disabled={kind === 'page' && chosen === ''} save={save}>
        <fieldset class="choices">
          <legend class="field-label">What is it for?</legend>
          <label class="check line">
            <input type="radio" name="kind" checked={kind === 'page'} onChange={() => setKind('page')} />A
            page: asks one assistant
          </label>
          <label class="check line">
            <input type="radio" name="kind" checked={kind === 'search'} onChange={() => setKind('search')} />A
            program: searches and converses
          </label>
        </fieldset>
        {kind === 'page' && (
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
        {text('scope', kind === 'page' ? 'Allowed websites' : 'Collections', {
          placeholder: kind === 'page' ? 'all, or https://www.example.com' : 'all, or names with commas',
        })}
        {text('description', 'Description', {
          placeholder: kind === 'page' ? `page of ${chosen}` : 'search only',
        })}
        <details>
          <summary>Limits</summary>
          <Limits text={text} days="never" />
        </details>
      </Form>
    </Dialog>
  )
}
