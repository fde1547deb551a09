/** Conversation models: the list, a new one, and a test with one question. */
import { useState } from 'preact/hooks'
import { read, send, server, useAction, useLoaded, useRead } from '../api'
import { loadChoices, type Model } from '../chat/choices'
import { Button } from '../parts/button'
import { changesOf, type Draft, FormDialog, objectIn, useDraft } from '../parts/form'
import { duration } from '../parts/format'
import { ListPage } from '../parts/list'

export default function Models() {
  const list = useRead<Model[]>('/conversations/models')
  const choices = useLoaded('choices', loadChoices)
  const histories = [...new Set(list.data?.map(({ history_collection: name }) => name))]
  const missing = useLoaded(histories.length > 0 ? `histories ${histories}` : undefined, () =>
    missingOf(histories),
  )
  return (
    <ListPage
      title="Models"
      lead="A conversation model says which language model writes answers, and where conversations are kept."
      list={list}
      empty={{
        icon: 'models',
        title: 'No models yet',
        text: 'The built-in model needs no account. Others take a key of their provider.',
      }}
      kind="model"
      form={(close) => <NewModel close={close} />}
      edit={(each, close) => <EditModel model={each} close={close} />}
      item={({ id, model_name, history_collection: history }) => ({
        name: id,
        about: `${model_name} · conversations in ${history}`,
        path: pathOf(id),
        says: 'Assistants and keys that name it cannot ask any more. Its conversations stay until they expire.',
        children: missing.data?.has(history) ? (
          <MissingHistory name={history} made={missing.reload} />
        ) : (
          <Test model={id} collection={choices.data?.collections?.[0]?.name} />
        ),
      })}
    />
  )
}

/** A model that cannot answer: what is said with it has no place. */
function MissingHistory({ name, made }: { name: string; made: () => void }) {
  const { busy, error, start } = useAction(async () => {
    await makeHistory(name)
    made()
  })
  return (
    <>
      <span role="status" class="bad">
        {error?.message ?? `It cannot answer: its history ${name} was deleted.`}
      </span>
      <Button label="Make an empty one" disabled={busy} onClick={start} />
    </>
  )
}

/** Asks one question, whose conversation is deleted again. */
function Test({ model, collection }: { model: string; collection: string | undefined }) {
  const [took, setTook] = useState<number>()
  const { busy, error, start } = useAction(async () => {
    setTook(undefined)
    const began = performance.now()
    const { conversation_id: id } = await send<{ conversation_id: string }>('POST', '/conversations', {
      question: 'What is this about?',
      model,
      collections: [collection],
    })
    setTook(performance.now() - began)
    await send('DELETE', `/conversations/${encodeURIComponent(id)}`)
  })
  return (
    <>
      <span role="status" class="test-state">
        {error ? (
          <span class="bad">{error.message}</span>
        ) : took !== undefined ? (
          <span class="badge good">answered in {duration(took)}</span>
        ) : (
          busy && <span class="badge">asking …</span>
        )}
      </span>
      <Button
        label="Test"
        disabled={collection === undefined || busy}
        title={collection === undefined ? 'Import documents first: a test asks one question about them.' : ''}
        onClick={start}
      />
    </>
  )
}

// =============================================================================
// A new conversation model, with a place for its conversations; or what is to change about one.

const MAX_BYTES = 16_384
const MAX_TOKENS = 1_024
const DAY_S = 86_400
const EXAMPLES = [
  'local/extractive',
  'cloudflare/@cf/meta/llama-3.3-70b-instruct-fp8-fast',
  'openai/gpt-4o-mini',
  'anthropic/claude-sonnet-4-5',
  'google/gemini-2.5-flash',
]

export const pathOf = (id: string): string => `/conversations/models/${encodeURIComponent(id)}`

function NewModel({ close }: { close: () => void }) {
  const { draft, text } = useDraft({ id: '', name: 'local/extractive', apiKey: '', url: '' })
  const isOpenAi = draft.name.startsWith('openai/')
  const save = async () => {
    const history = `${draft.id}_history`
    await makeHistory(history)
    await server.call('POST', '/conversations/models', {
      body: {
        id: draft.id,
        model_name: draft.name,
        history_collection: history,
        max_bytes: MAX_BYTES,
        max_tokens: MAX_TOKENS,
        ...(draft.apiKey !== '' && { api_key: draft.apiKey }),
        ...(isOpenAi && draft.url !== '' && { openai_url: draft.url }),
      },
    })
  }
  return (
    <FormDialog
      title="New model"
      action="Create model"
      busy="Asking the provider …"
      save={save}
      close={close}
    >
      {text('id', 'Name', { required: true })}
      {modelName({ text })}
      {!/^(local|cloudflare)\//.test(draft.name) &&
        text('apiKey', "The provider's API key", {
          type: 'password',
          hint: 'It is stored encrypted, and never shown again.',
        })}
      {isOpenAi &&
        text('url', 'Address', { placeholder: 'https://api.openai.com, or any server that speaks its API' })}
    </FormDialog>
  )
}

const modelName = ({ text }: Pick<Draft<{ name: string }>, 'text'>) =>
  text('name', 'Language model', {
    required: true,
    options: EXAMPLES,
    hint: 'Provider and model, such as openai/gpt-4o-mini. local/extractive is built in.',
  })

/** What the form has a field for. The rest is JSON. */
const FIELDS = [
  'model_name',
  'api_key',
  'system_prompt',
  'temperature',
  'max_tokens',
  'ttl',
  'fallbacks',
] as const

/** A secret as it is shown. */
const MASKED = /^[^*]{0,5}\*+$/

function EditModel({ model, close }: { model: Model; close: () => void }) {
  // Secrets are shown masked: they are kept until others are typed.
  const shown = Object.entries(model).filter(
    ([, value]) => !(typeof value === 'string' && MASKED.test(value)),
  )
  const { id, ...stored } = Object.fromEntries(shown)
  const rest = Object.fromEntries(
    Object.entries(stored).filter(([name]) => !FIELDS.some((field) => field === name)),
  )
  const { draft, text } = useDraft({
    name: model.model_name,
    apiKey: '',
    prompt: textOf(stored.system_prompt),
    temperature: textOf(stored.temperature),
    length: textOf(stored.max_tokens),
    days: stored.ttl === undefined ? '' : String(Number(stored.ttl) / DAY_S),
    fallbacks: Array.isArray(stored.fallbacks) ? stored.fallbacks.join(', ') : '',
    rest: JSON.stringify(rest, null, 2),
  })
  const save = async () => {
    const fallbacks = draft.fallbacks.split(/[\s,]+/).filter(Boolean)
    const wanted = {
      ...objectIn(draft.rest),
      model_name: draft.name,
      ...(draft.apiKey !== '' && { api_key: draft.apiKey }),
      ...(draft.prompt !== '' && { system_prompt: draft.prompt }),
      ...(draft.temperature !== '' && { temperature: Number(draft.temperature) }),
      ...(draft.length !== '' && { max_tokens: Number(draft.length) }),
      ...(draft.days !== '' && { ttl: Math.round(Number(draft.days) * DAY_S) }),
      ...(fallbacks.length > 0 && { fallbacks }),
    }
    await send('PUT', pathOf(model.id), changesOf(stored, wanted))
  }
  return (
    <FormDialog title={`Edit ${id}`} busy="Asking the provider …" save={save} close={close} wide>
      {modelName({ text })}
      {!draft.name.startsWith('local/') &&
        text('apiKey', "The provider's API key", {
          type: 'password',
          placeholder: 'api_key' in model ? 'stays as it is' : '',
          hint: 'It is stored encrypted, and never shown again. Another provider or address needs it again.',
        })}
      {text('prompt', 'System prompt', { rows: 5, placeholder: 'Leave empty to use the built-in prompt' })}
      <div class="split">
        {text('temperature', 'Temperature', {
          type: 'number',
          min: '0',
          max: '2',
          step: 'any',
          placeholder: 'as the provider has it',
        })}
        {text('length', 'Tokens per answer', { type: 'number', min: '1' })}
        {text('days', 'Conversations expire after days', { type: 'number', min: '0', step: 'any' })}
        {text('fallbacks', 'Fallbacks', { placeholder: 'other models, with commas' })}
      </div>
      <details>
        <summary>All other settings</summary>
        {text('rest', 'JSON', {
          rows: 8,
          code: true,
          required: true,
          hint: (
            <>
              Addresses, budgets and parameters, <a href="/docs/models.html">as the API has them</a>. A
              property that you remove is taken away. Secrets are not shown, and stay.
            </>
          ),
        })}
      </details>
    </FormDialog>
  )
}

const textOf = (value: unknown): string =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : ''

/** As `parley init` makes it. */
const HISTORY_FIELDS = [
  { name: 'conversation_id', type: 'string' },
  { name: 'model_id', type: 'string' },
  { name: 'timestamp', type: 'int32' },
  { name: 'role', type: 'string', index: false },
  { name: 'message', type: 'string', index: false },
]

/** Those of some history collections that are not there, neither by name nor by an alias. @throws Refusal */
async function missingOf(histories: readonly string[]): Promise<Set<string>> {
  const [collections, { aliases }] = await Promise.all([
    read<{ name: string }[]>('/collections'),
    read<{ aliases: { name: string }[] }>('/aliases'),
  ])
  const there = new Set([...collections, ...aliases].map(({ name }) => name))
  return new Set(histories.filter((name) => !there.has(name)))
}

/** Makes a history collection, unless it is there. @throws Refusal */
async function makeHistory(name: string): Promise<void> {
  if (await server.find(`/collections/${encodeURIComponent(name)}`)) return
  await server.call('POST', '/collections', { body: { name, fields: HISTORY_FIELDS } })
}
