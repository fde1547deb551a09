/** The first run: content, which is a website or files, who answers, a question, and what to paste into a page. */
import { useEffect, useState } from 'preact/hooks'
import {
  isAssistantName,
  makeAssistant,
  makePageKey,
  snippet,
} from '../../../../scripts/parley/commands/init.mjs'
import { go, place, to, toConversation } from '../address'
import { type Refusal, server, useAction, useLoaded } from '../api'
import { listed, loadChoices } from '../chat/choices'
import { Button, Secret } from '../parts/button'
import { Form, optionsOf, SelectField, useDraft } from '../parts/form'
import { collectionName } from '../parts/format'
import { Page, Problem, Shown, Step } from '../parts/page'
import { isNew, looksOf, questionsOf, type Source, type Title } from './site'
import { AddressForm, Picture, Reading } from './website'

const BUILT_IN = 'local/extractive'
const MODELS = [BUILT_IN, 'openai/gpt-4o-mini', 'anthropic/claude-sonnet-4-5', 'google/gemini-2.5-flash']

async function loadAll(signal: AbortSignal) {
  const [choices, all] = await Promise.all([
    loadChoices(signal),
    listed<{ sources: Source[] }>('/sources', signal),
  ])
  return { ...choices, websites: all?.sources.filter(({ kind }) => kind === 'website') ?? [] }
}

export default function Start() {
  const choices = useLoaded('choices start', loadAll)
  const { query } = place.value
  const { collections = [], assistants = [], websites = [] } = choices.data ?? {}
  const names = collections.map(({ name }) => name)
  const filled = collections.filter(({ num_documents: count }) => count > 0).map(({ name }) => name)
  const given = query.get('collection') ?? ''
  // Whoever left while a website was read comes back to it.
  const begun = websites.find((each) => isNew(each) && names.includes(each.collection))?.collection
  const collection = given !== '' ? given : (begun ?? filled[0] ?? names[0] ?? '')
  const website = websites.find((each) => each.collection === collection)
  const isEmpty = !filled.includes(collection)
  const own = isAssistantName(collection) ? collection : collectionName(collection)
  const found =
    assistants.find(({ name }) => name === own) ??
    assistants.find(({ collections = [] }) => collections.includes(collection))
  const assistant = found?.name ?? own
  const known = found !== undefined
  const [answered, setAnswered] = useState<string>()
  /** the assistant that was made for a website on this visit */
  const [made, setMade] = useState('')
  const [unread, setUnread] = useState<{ url: string; why: Refusal }>()
  const ready = async (titles: Title[]) => {
    if (known) return
    const questions = questionsOf(titles)
    await makeAssistant(server as never, { name: assistant, collection, model: BUILT_IN, questions })
    setMade(assistant)
    choices.reload()
  }
  const form = (
    <AddressForm
      key={unread?.url}
      begin={unread?.url}
      fault={unread?.why}
      registered={() => {
        setUnread(undefined)
        choices.reload()
      }}
    />
  )
  const waits = known ? undefined : collection === '' ? 1 : 2
  return (
    <Page
      title="Get started"
      lead="Name your website, and its chat is here in a minute. Each step can be changed later."
    >
      <Shown of={choices}>
        {() => (
          <ol class="steps">
            <Step title="Your content" done={!isEmpty}>
              {website && (
                <Reading
                  key={website.name}
                  source={website}
                  ready={ready}
                  done={choices.reload}
                  failed={({ url }, why) => {
                    setUnread({ url, why })
                    choices.reload()
                    go(to(['start']), { replace: true })
                  }}
                />
              )}
              {website === undefined ? (
                form
              ) : (
                <details open={unread !== undefined}>
                  <summary>Another website, or files</summary>
                  {form}
                </details>
              )}
              {names.length > (website ? 1 : 0) && (
                <SelectField
                  label="Or a collection that is here"
                  value={collection}
                  options={optionsOf(names)}
                  hint={isEmpty && !website && 'It has no documents yet.'}
                  change={(name) => go(to(['start'], { collection: name }))}
                />
              )}
            </Step>
            <Step title="Who answers" done={known} waits={collection === '' ? 1 : undefined}>
              {known ? (
                <p class="soft">
                  The assistant <a href={to(['assistants', assistant])}>{assistant}</a> answers from{' '}
                  {collection}. Another language model is chosen under <a href={to(['models'])}>Models</a>.
                </p>
              ) : website && isNew(website) ? (
                <p class="soft">An assistant is made as soon as the first pages are read.</p>
              ) : (
                <MakeAssistant name={assistant} collection={collection} made={choices.reload} />
              )}
            </Step>
            <Step title="Ask it" done={answered !== undefined} waits={waits}>
              <Picture key={assistant} assistant={assistant} source={website} answered={setAnswered} />
              {answered !== undefined && (
                <p class="hint" role="status">
                  <a href={toConversation(answered)}>See its sources, and why it is what it is</a>
                </p>
              )}
            </Step>
            <Step title="Put it on your site" waits={waits}>
              <Snippet key={assistant} assistant={assistant} website={website} isMade={made === assistant} />
            </Step>
          </ol>
        )}
      </Shown>
    </Page>
  )
}

function MakeAssistant({ name, collection, made }: { name: string; collection: string; made: () => void }) {
  const { draft, text } = useDraft({ model: BUILT_IN, apiKey: '' })
  const { model, apiKey } = draft
  const save = async () => {
    await makeAssistant(server as never, { name, collection, model, ...(apiKey !== '' && { apiKey }) })
    made()
  }
  return (
    <Form class="form" action="Make the assistant" busy="Making it …" save={save}>
      {text('model', 'Language model', {
        options: MODELS,
        required: true,
        hint: `${BUILT_IN} needs no account: it picks and cites sentences. A language model writes answers of its own.`,
      })}
      {!/^(local|cloudflare)\//.test(model) && text('apiKey', "The provider's API key", { type: 'password' })}
    </Form>
  )
}

interface SnippetProps {
  assistant: string
  /** gives it name and colour, and is the only site that may show it */
  website: Source | undefined
  /** whether the assistant was made just now: then so is the key */
  isMade: boolean
}

function Snippet({ assistant, website, isMade }: SnippetProps) {
  const [value, setValue] = useState<string>()
  const [told, setTold] = useState('')
  const { busy, error, start } = useAction(async () => {
    const { origin, ...looks } = website ? looksOf(website) : {}
    const key = await makePageKey(server as never, assistant, origin === undefined ? [] : [origin], () => {})
    if (key !== undefined)
      return setValue(
        snippet(location.origin, assistant, key, { ...looks, ...(website && { mode: 'bubble' }) }),
      )
    setTold(
      'There is a key for this page already, and its value is not shown again. Make another one under Keys.',
    )
  })
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key is made once
  useEffect(() => {
    if (isMade) start()
  }, [isMade])
  return (
    <>
      <p class="soft">
        A key for pages may ask this assistant and nothing else
        {website && `, and only pages of ${looksOf(website).origin} may use it`}. It is shown once.
      </p>
      {value !== undefined && <Secret text={value} of="snippet" />}
      {told !== '' && <p role="status">{told}</p>}
      {error && <Problem error={error} />}
      {value === undefined && (
        <div class="line">
          <Button label="Get the embed code" kind="primary" disabled={busy} onClick={start} />
        </div>
      )}
    </>
  )
}
