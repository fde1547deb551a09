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
import { send, useAction, useLoaded } from '../api'
import { loadChoices } from '../chat/choices'
import type { RecordedTurn } from '../conversations/record'
import { collectionName } from '../import/preview'
import { server } from '../import/server'
import { Button, Copy } from '../parts/button'
import { Form, optionsOf, SelectField, TextField, useDraft } from '../parts/form'
import { Page } from '../parts/page'
import { Prose } from '../parts/prose'
import { Problem, Shown } from '../parts/states'

const BUILT_IN = 'local/extractive'
const MODELS = [BUILT_IN, 'openai/gpt-4o-mini', 'anthropic/claude-sonnet-4-5', 'google/gemini-2.5-flash']

export default function Start() {
  const choices = useLoaded('choices start', loadChoices)
  const { query } = place.value
  const collections = choices.data?.collections ?? []
  const names = collections.map(({ name }) => name)
  const filled = collections.filter(({ num_documents: count }) => count > 0).map(({ name }) => name)
  const given = query.get('collection') ?? ''
  const collection = given !== '' ? given : (filled[0] ?? names[0] ?? '')
  const isEmpty = !filled.includes(collection)
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
      <Shown of={choices} lines={6}>
        {() => (
          <ol class="steps">
            <Step title="Your content" done={!isEmpty}>
              {names.length === 0 ? (
                <p class="soft">Import a folder or a few files. Parley makes the collection for them.</p>
              ) : (
                <SelectField
                  label="Collection"
                  value={collection}
                  options={optionsOf(names)}
                  hint={isEmpty && 'It has no documents yet.'}
                  change={(name) => go(to(['start'], { collection: name }))}
                />
              )}
              <div class="page-actions">
                <Button
                  label="Import files"
                  kind={isEmpty ? 'primary' : ''}
                  icon="upload"
                  href={to(['import'], { next: 'start' })}
                />
              </div>
            </Step>
            <Step title="Who answers" done={known} waits={collection === '' ? 1 : undefined}>
              {known ? (
                <p class="soft">
                  The assistant {assistant} answers from {collection}.
                </p>
              ) : (
                <MakeAssistant name={assistant} collection={collection} made={choices.reload} />
              )}
            </Step>
            <Step title="A test question" done={asked} waits={known ? undefined : collection === '' ? 1 : 2}>
              <Try assistant={assistant} answered={() => setAsked(true)} />
            </Step>
            <Step title="Put it on your site" waits={known ? undefined : collection === '' ? 1 : 2}>
              <Snippet assistant={assistant} />
            </Step>
          </ol>
        )}
      </Shown>
    </Page>
  )
}

interface StepProps {
  title: string
  done?: boolean
  /** the number of a step that has to be done first */
  waits?: number | undefined
  children: ComponentChildren
}

const Step = ({ title, done = false, waits, children }: StepProps) => (
  <li class={done ? 'step done' : 'step'}>
    <div class="panel-card form">
      <h2>
        {title}
        {done && <span class="badge good">done</span>}
      </h2>
      {waits !== undefined ? <p class="soft">First do step {waits}.</p> : children}
    </div>
  </li>
)

function MakeAssistant({ name, collection, made }: { name: string; collection: string; made: () => void }) {
  const {
    draft: { model, apiKey },
    field,
  } = useDraft({ model: BUILT_IN, apiKey: '' })
  const save = async () => {
    await makeAssistant(server as never, { name, collection, model, ...(apiKey !== '' && { apiKey }) })
    made()
  }
  return (
    <Form class="form" action="Make the assistant" busy="Making it …" save={save}>
      <TextField
        label="Language model"
        options={MODELS}
        required
        {...field('model')}
        hint={`${BUILT_IN} needs no account: it picks and cites sentences. A language model writes answers of its own.`}
      />
      {!/^(local|cloudflare)\//.test(model) && (
        <TextField label="The provider's API key" type="password" {...field('apiKey')} />
      )}
    </Form>
  )
}

type Answer = Pick<RecordedTurn, 'answer' | 'citations'> & { conversation_id: string }

function Try({ assistant, answered }: { assistant: string; answered: () => void }) {
  const [question, setQuestion] = useState('')
  const [answer, setAnswer] = useState<Answer>()
  const ask = async () => {
    const path = `/a/${encodeURIComponent(assistant)}/conversations`
    setAnswer(await send<Answer>('POST', path, { question, stream: false }))
    answered()
  }
  return (
    <Form class="form" action="Ask" busy="Asking …" save={ask}>
      <TextField
        label="A question that your content answers"
        required
        value={question}
        change={setQuestion}
      />
      {answer && (
        <div role="status">
          <Prose answer={answer.answer} citations={answer.citations} />
          <p class="hint">
            <a href={toConversation(answer.conversation_id)}>See its sources, and why it is what it is</a>
          </p>
        </div>
      )}
    </Form>
  )
}

function Snippet({ assistant }: { assistant: string }) {
  const [value, setValue] = useState<string>()
  const [told, setTold] = useState('')
  const { error, start } = useAction(async () => {
    const key = await makePageKey(server as never, assistant, [], () => {})
    if (key !== undefined) return setValue(snippet(location.origin, assistant, key))
    setTold(
      'There is a key for this page already, and its value is not shown again. Make another one under Keys.',
    )
  })
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
          <Button label="Get the embed code" kind="primary" onClick={() => start()} />
        </div>
      )}
    </>
  )
}
