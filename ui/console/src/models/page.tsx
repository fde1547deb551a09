/** Conversation models: the list, a new one, and a test with one question. */
import { useState } from 'preact/hooks'
import { HISTORY } from '../../../../scripts/parley/commands/init.mjs'
import { read, send, server, useAction, useLoaded, useRead } from '../api'
import { loadChoices, type Model } from '../chat/choices'
import { Button } from '../parts/button'
import {
  changesOf,
  type Draft,
  FormDialog,
  given,
  namesIn,
  numberIn,
  objectIn,
  useDraft,
} from '../parts/form'
import { duration } from '../parts/format'
import { ListPage } from '../parts/list'
import { Act } from '../parts/page'

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
          <>
            <span role="status" class="bad">
              It cannot answer: its history {history} was deleted.
            </span>
            <Act label="Make an empty one" run={() => makeHistory(history).then(missing.reload)} />
          </>
        ) : (
          <Test model={id} collection={choices.data?.collections?.[0]?.name} />
        ),
      })}
    />
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

/** Whose models ask for no key of a provider. */
const KEYLESS = /^(local|cloudflare)\//

function NewModel({ close }: { close: () => void }) {
  const { draft, text } = useDraft({ id: '', model_name: 'local/extractive', api_key: '', openai_url: '' })
  const isOpenAi = draft.model_name.startsWith('openai/')
  const save = async () => {
    const history_collection = `${draft.id}_history`
    await makeHistory(history_collection)
    const openai_url = isOpenAi ? draft.openai_url : ''
    const places = { history_collection, max_bytes: MAX_BYTES, max_tokens: MAX_TOKENS }
    await send('POST', '/conversations/models', given({ ...draft, openai_url, ...places }))
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
      {!KEYLESS.test(draft.model_name) &&
        text('api_key', "The provider's API key", {
          type: 'password',
          hint: 'It is stored encrypted, and never shown again.',
        })}
      {isOpenAi &&
        text('openai_url', 'Address', {
          placeholder: 'https://api.openai.com, or any server that speaks its API',
        })}
    </FormDialog>
  )
}

const modelName = ({ text }: Pick<Draft<{ model_name: string }>, 'text'>) =>
  text('model_name', 'Language model', {
    required: true,
    options: EXAMPLES,
    hint: 'Provider and model, such as openai/gpt-4o-mini. local/extractive is built in.',
  })

/** A secret as it is shown. */
const MASKED = /^[^*]{0,5}\*+$/

function EditModel({ model, close }: { model: Model; close: () => void }) {
  // Secrets are shown masked: they are kept until others are typed.
  const { id, ...stored } = Object.fromEntries(
    Object.entries(model).filter(([, value]) => !(typeof value === 'string' && MASKED.test(value))),
  )
  // What the form has no field for is JSON.
  const { model_name, system_prompt, temperature, max_tokens, ttl, fallbacks, ...rest } = stored
  const { draft, text } = useDraft({
    model_name: String(model_name),
    api_key: '',
    system_prompt: String(system_prompt ?? ''),
    temperature: String(temperature ?? ''),
    max_tokens: String(max_tokens ?? ''),
    days: ttl === undefined ? '' : String(Number(ttl) / DAY_S),
    fallbacks: Array.isArray(fallbacks) ? fallbacks.join(', ') : '',
    rest: JSON.stringify(rest, null, 2),
  })
  const save = async () => {
    const { days, rest: others, ...told } = draft
    const wanted = {
      ...objectIn(others),
      ...given({
        ...told,
        temperature: numberIn(told.temperature),
        max_tokens: numberIn(told.max_tokens),
        ttl: days === '' ? '' : Math.round(Number(days) * DAY_S),
        fallbacks: namesIn(told.fallbacks),
      }),
    }
    await send('PUT', pathOf(model.id), changesOf(stored, wanted))
  }
  return (
    <FormDialog title={`Edit ${id}`} busy="Asking the provider …" save={save} close={close} wide>
      {modelName({ text })}
      {!draft.model_name.startsWith('local/') &&
        text('api_key', "The provider's API key", {
          type: 'password',
          placeholder: 'api_key' in model ? 'stays as it is' : '',
          hint: 'It is stored encrypted, and never shown again. Another provider or address needs it again.',
        })}
      {text('system_prompt', 'System prompt', {
        rows: 5,
        placeholder: 'Leave empty to use the built-in prompt',
      })}
      <div class="split">
        {text('temperature', 'Temperature', {
          type: 'number',
          min: '0',
          max: '2',
          step: 'any',
          placeholder: 'as the provider has it',
        })}
        {text('max_tokens', 'Tokens per answer', { type: 'number', min: '1' })}
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
  await send('POST', '/collections', { name, fields: HISTORY })
}
