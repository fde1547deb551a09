/** API keys: the list, and a key for a page or a search, whose value is shown once. */
import { useState } from 'preact/hooks'
import { go, place, to } from '../address'
import { mapped, read, send, useAction, useLoaded } from '../api'
import type { Assistant } from '../chat/choices'
import { Copy } from '../parts/copy'
import { Confirm, Dialog } from '../parts/dialog'
import { when } from '../parts/format'
import { Icon } from '../parts/icon'
import { Item, ListPage } from '../parts/list-page'
import { Problem } from '../parts/states'

interface Key {
  id: number
  description: string
  actions: string[]
  collections: string[]
  value_prefix?: string
  /** in seconds since 1970 */
  expires_at: number
  limits?: { assistant?: string; allowed_origins?: string[] }
}

/** Past this a key counts as one without an end. */
const NEVER = 4_000_000_000

export default function Keys() {
  const list = useLoaded('keys', (signal) => read<{ keys: Key[] }>('/keys', signal))
  const [removing, setRemoving] = useState<Key>()
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
      action={
        <a class="button primary" href={to(['keys'], { new: '1' })}>
          <Icon name="plus" />
          New key
        </a>
      }
      item={(each) => (
        <Item
          key={each.id}
          name={each.description || `Key ${each.id}`}
          about={
            <>
              <code>{each.value_prefix}…</code> · {each.actions.join(', ')} on {each.collections.join(', ')}
              {each.expires_at < NEVER && ` · until ${when(each.expires_at * 1_000)}`}
            </>
          }
          called={`the key ${each.description || each.id}`}
          remove={() => setRemoving(each)}
        >
          {each.limits?.assistant !== undefined && (
            <span class="badge good">page of {each.limits.assistant}</span>
          )}
          {each.limits?.allowed_origins?.map((origin) => (
            <span key={origin} class="badge">
              {origin}
            </span>
          ))}
        </Item>
      )}
    >
      {place.value.query.has('new') && (
        <NewKey
          close={() => {
            go(to(['keys']), { replace: true })
            list.reload()
          }}
        />
      )}
      {removing && (
        <Confirm
          title="Delete this key?"
          action="Delete the key"
          run={async () => {
            await send('DELETE', `/keys/${removing.id}`)
            list.reload()
          }}
          close={() => setRemoving(undefined)}
        >
          <p>
            Pages and programs that use “{removing.description || removing.id}” are refused within seconds.
          </p>
        </Confirm>
      )}
    </ListPage>
  )
}

function NewKey({ close }: { close: () => void }) {
  const assistants = useLoaded('assistants', (signal) =>
    read<{ assistants: Assistant[] }>('/assistants', signal),
  )
  const [kind, setKind] = useState<'page' | 'search'>('page')
  const [description, setDescription] = useState('')
  const [assistant, setAssistant] = useState('')
  const [scope, setScope] = useState('')
  const [value, setValue] = useState<string>()
  const names = assistants.data?.assistants.map(({ name }) => name) ?? []
  const chosen = assistant || names[0] || ''
  const words = scope.split(/[\s,]+/).filter(Boolean)
  const { busy, error, start } = useAction(async (_: Event) => {
    const body =
      kind === 'page'
        ? {
            description: description || `page of ${chosen}`,
            actions: ['documents:search'],
            collections: ['*'],
            limits: { assistant: chosen, ...(words.length > 0 && { allowed_origins: words }) },
          }
        : {
            description: description || 'search only',
            actions: ['documents:search'],
            collections: words.length > 0 ? words : ['*'],
          }
    setValue((await send<{ value: string }>('POST', '/keys', body)).value)
  })
  if (value !== undefined) {
    const snippet = `<script type="module" src="${location.origin}/widget/parley-chat.js"></script>\n<parley-chat assistant="${chosen}" key="${value}"></parley-chat>`
    return (
      <Dialog title="Your new key" close={close}>
        <div class="dialog-body form">
          <p>Copy it now: it is not shown again. Parley keeps only a hash of it.</p>
          <div class="secret">
            <code>{value}</code>
            <Copy text={value} label="Copy the key" />
          </div>
          {kind === 'page' && (
            <>
              <p>Paste this into your page:</p>
              <div class="secret">
                <code>{snippet}</code>
                <Copy text={snippet} label="Copy the snippet" />
              </div>
            </>
          )}
          <div class="dialog-foot">
            <button type="button" class="button primary" onClick={close}>
              Done
            </button>
          </div>
        </div>
      </Dialog>
    )
  }
  return (
    <Dialog title="New key" close={close}>
      <form class="dialog-body form" onSubmit={start} autocomplete="off">
        <fieldset class="choices">
          <legend class="field-label">What is it for?</legend>
          <label class="check">
            <input type="radio" name="kind" checked={kind === 'page'} onChange={() => setKind('page')} />A
            page: asks one assistant
          </label>
          <label class="check">
            <input type="radio" name="kind" checked={kind === 'search'} onChange={() => setKind('search')} />A
            program: searches and converses
          </label>
        </fieldset>
        {kind === 'page' && (
          <div>
            <label class="field-label" for="key-assistant">
              Assistant
            </label>
            <select
              id="key-assistant"
              class="input"
              required
              value={chosen}
              onChange={(event) => setAssistant(event.currentTarget.value)}
            >
              {names.map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
            {assistants.data && names.length === 0 && (
              <p class="hint">
                There is no assistant yet. <a href={to(['assistants', 'new'])}>Make one first</a>.
              </p>
            )}
          </div>
        )}
        <div>
          <label class="field-label" for="key-scope">
            {kind === 'page' ? 'Origins' : 'Collections'}
          </label>
          <input
            id="key-scope"
            class="input"
            spellcheck={false}
            placeholder={kind === 'page' ? 'all, or https://www.example.com' : 'all, or names with commas'}
            value={scope}
            onInput={(event) => setScope(event.currentTarget.value)}
          />
        </div>
        <div>
          <label class="field-label" for="key-description">
            Description
          </label>
          <input
            id="key-description"
            class="input"
            placeholder={kind === 'page' ? `page of ${chosen}` : 'search only'}
            value={description}
            onInput={(event) => setDescription(event.currentTarget.value)}
          />
        </div>
        {error && <Problem error={error} />}
        <div class="dialog-foot">
          <button type="submit" class="button primary" disabled={busy || (kind === 'page' && chosen === '')}>
            Create key
          </button>
        </div>
      </form>
    </Dialog>
  )
}
