/** The first run: content, a model, a test question, and what to paste into a page. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import {
  isAssistantName,
  makeAssistant,
  makePageKey,
  snippet,
} from '../../../../scripts/parley/commands/init.mjs'
import { go, place, to, toConversation } from '../address'
import { Refusal, send, useLoaded } from '../api'
import { loadChoices } from '../chat/choices'
import type { RecordedTurn } from '../conversations/record'
import { collectionName } from '../import/preview'
import { server } from '../import/server'
import { Copy } from '../parts/copy'
import { Icon } from '../parts/icon'
import { Page } from '../parts/page'
import { Prose } from '../parts/prose'
import { Loading, Problem } from '../parts/states'

const BUILT_IN = 'local/extractive'
const MODELS = [BUILT_IN, 'openai/gpt-4o-mini', 'anthropic/claude-sonnet-4-5', 'google/gemini-2.5-flash']

const faultOf = (error: unknown): Refusal =>
  error instanceof Refusal ? error : new Refusal(0, error instanceof Error ? error.message : String(error))

export default function Start() {
  const choices = useLoaded('choices start', loadChoices)
  const { query } = place.value
  const names = choices.data?.collections?.map(({ name }) => name) ?? []
  const given = query.get('collection') ?? ''
  const collection = given !== '' ? given : (names[0] ?? '')
  const own = isAssistantName(collection) ? collection : collectionName(collection)
  const assistants = choices.data?.assistants ?? []
  const found =
    assistants.find(({ name }) => name === own) ??
    assistants.find(({ collections = [] }) => collections.includes(collection))
  const assistant = found?.name ?? own
  const known = found !== undefined
  const [asked, setAsked] = useState(false)
  return (
    <Page
      title="Get started"
      lead="Four steps from your documents to a chat on your site. Each can be changed later."
    >
      {choices.loading && <Loading lines={6} />}
      {choices.error && <Problem error={choices.error} retry={choices.reload} />}
      {choices.data && (
        <ol class="steps">
          <Step title="Your content" done={collection !== ''}>
            {names.length === 0 ? (
              <p class="soft">Import a folder or a few files. Parley makes the collection for them.</p>
            ) : (
              <div>
                <label class="field-label" for="start-collection">
                  Collection
                </label>
                <select
                  id="start-collection"
                  class="input"
                  value={collection}
                  onChange={(event) => go(to(['start'], { collection: event.currentTarget.value }))}
                >
                  {names.map((name) => (
                    <option key={name} value={name}>
                      {name}
                    </option>
                  ))}
                </select>
              </div>
            )}
            <div class="page-actions">
              <a
                class={names.length === 0 ? 'button primary' : 'button'}
                href={to(['import'], { next: 'start' })}
              >
                <Icon name="upload" />
                Import files
              </a>
            </div>
          </Step>
          <Step title="Who answers" done={known} waits={collection === ''}>
            {known ? (
              <p class="soft">
                The assistant {assistant} answers from {collection}.
              </p>
            ) : (
              <MakeAssistant name={assistant} collection={collection} made={choices.reload} />
            )}
          </Step>
          <Step title="A test question" done={asked} waits={!known}>
            <Try assistant={assistant} answered={() => setAsked(true)} />
          </Step>
          <Step title="Put it on your site" waits={!known}>
            <Snippet assistant={assistant} />
          </Step>
        </ol>
      )}
    </Page>
  )
}

interface StepProps {
  title: string
  done?: boolean
  /** whether a step before it has to be done first */
  waits?: boolean
  children: ComponentChildren
}

const Step = ({ title, done = false, waits = false, children }: StepProps) => (
  <li class={done ? 'step done' : 'step'}>
    <div class="panel-card form">
      <h2>
        {title}
        {done && <span class="badge good">done</span>}
      </h2>
      {waits ? <p class="soft">The step before it comes first.</p> : children}
    </div>
  </li>
)

function MakeAssistant({ name, collection, made }: { name: string; collection: string; made: () => void }) {
  const [model, setModel] = useState(BUILT_IN)
  const [apiKey, setApiKey] = useState('')
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<Refusal>()
  const submit = async (event: Event) => {
    event.preventDefault()
    setBusy(true)
    setError(undefined)
    try {
      await makeAssistant(server as never, { name, collection, model, ...(apiKey !== '' && { apiKey }) })
      made()
    } catch (fault) {
      setError(faultOf(fault))
    }
    setBusy(false)
  }
  return (
    <form class="form" onSubmit={submit} autocomplete="off">
      <div>
        <label class="field-label" for="start-model">
          Language model
        </label>
        <input
          id="start-model"
          class="input"
          list="start-models"
          required
          spellcheck={false}
          value={model}
          onInput={(event) => setModel(event.currentTarget.value.trim())}
        />
        <datalist id="start-models">
          {MODELS.map((each) => (
            <option key={each} value={each} />
          ))}
        </datalist>
        <p class="hint">
          {BUILT_IN} needs no account: it picks and cites sentences. A language model writes answers of its
          own.
        </p>
      </div>
      {!/^(local|cloudflare)\//.test(model) && (
        <div>
          <label class="field-label" for="start-key">
            The provider's API key
          </label>
          <input
            id="start-key"
            class="input"
            type="password"
            value={apiKey}
            onInput={(event) => setApiKey(event.currentTarget.value.trim())}
          />
        </div>
      )}
      {error && <Problem error={error} />}
      <div class="page-actions">
        <button type="submit" class="button primary" disabled={busy}>
          {busy ? 'Making it …' : 'Make the assistant'}
        </button>
      </div>
    </form>
  )
}

type Answer = Pick<RecordedTurn, 'answer' | 'citations'> & { conversation_id: string }

function Try({ assistant, answered }: { assistant: string; answered: () => void }) {
  const [question, setQuestion] = useState('')
  const [busy, setBusy] = useState(false)
  const [answer, setAnswer] = useState<Answer>()
  const [error, setError] = useState<Refusal>()
  const submit = async (event: Event) => {
    event.preventDefault()
    setBusy(true)
    setError(undefined)
    try {
      setAnswer(
        await send<Answer>('POST', `/a/${encodeURIComponent(assistant)}/conversations`, {
          question,
          stream: false,
        }),
      )
      answered()
    } catch (fault) {
      setError(faultOf(fault))
    }
    setBusy(false)
  }
  return (
    <form class="form" onSubmit={submit} autocomplete="off">
      <div>
        <label class="field-label" for="start-question">
          A question that your content answers
        </label>
        <input
          id="start-question"
          class="input"
          required
          value={question}
          onInput={(event) => setQuestion(event.currentTarget.value)}
        />
      </div>
      {error && <Problem error={error} />}
      {answer && (
        <div role="status">
          <Prose answer={answer.answer} citations={answer.citations} />
          <p class="hint">
            <a href={toConversation(answer.conversation_id)}>See its sources, and how it came about</a>
          </p>
        </div>
      )}
      <div class="page-actions">
        <button type="submit" class="button primary" disabled={busy}>
          {busy ? 'Asking …' : 'Ask'}
        </button>
      </div>
    </form>
  )
}

function Snippet({ assistant }: { assistant: string }) {
  const [value, setValue] = useState<string>()
  const [told, setTold] = useState('')
  const [error, setError] = useState<Refusal>()
  const make = async () => {
    setError(undefined)
    try {
      const key = await makePageKey(server as never, assistant, [], () => {})
      if (key === undefined)
        setTold(
          'There is a key for this page already, and its value is not shown again. Make another one under Keys.',
        )
      else setValue(snippet(location.origin, assistant, key))
    } catch (fault) {
      setError(faultOf(fault))
    }
  }
  return (
    <>
      <p class="soft">A key for pages may ask this assistant and nothing else. It is shown once.</p>
      {value !== undefined && (
        <div class="secret">
          <code>{value}</code>
          <Copy text={value} label="Copy the snippet" />
        </div>
      )}
      {told !== '' && <p role="status">{told}</p>}
      {error && <Problem error={error} />}
      {value === undefined && (
        <div class="page-actions">
          <button type="button" class="button primary" onClick={make}>
            Make a key and a snippet
          </button>
        </div>
      )}
    </>
  )
}
