/** The chat before its first question: what can be asked, or what is missing for it. */
import { NEW, to } from '../address'
import type { Loaded } from '../api'
import { Button } from '../parts/button'
import { Icon } from '../parts/icon'
import { Empty, Problem } from '../parts/states'
import type { Chat } from './chat'
import type { Choices } from './choices'
import { settings } from './settings'

interface WelcomeProps {
  chat: Chat
  choices: Loaded<Choices>
  settled: boolean
  open: () => void
}

const MOST = 6

export function Welcome({ chat, choices, settled, open }: WelcomeProps) {
  const { data, error } = choices
  const lost = chat.lost.value
  if (lost !== undefined) {
    return (
      <Empty icon="conversations" title="This conversation cannot be shown">
        <p role="alert">{lost}</p>
        <Button label="New conversation" kind="primary" href={NEW} />
      </Empty>
    )
  }
  if (error && !data) return <Problem error={error} retry={choices.reload} />
  // A conversation that the address names is on its way.
  if (chat.id !== undefined && chat.turns.value.length === 0) return null
  const { assistant, collection } = settings.value
  const missing = missingOf(data, assistant)
  if (missing !== undefined) {
    return (
      <Empty icon="start" title="Welcome to Parley">
        <p>{missing}</p>
        <div class="line">
          <Button label="Get started" kind="primary" href={to(['start'])} />
          <Button label="Import files" icon="upload" href={to(['import'])} />
        </div>
      </Empty>
    )
  }
  const questions = questionsOf(data, assistant, collection)
  const where = assistant === '' ? `the collection ${collection}` : `the assistant ${assistant}`
  return (
    <section class="welcome" aria-labelledby="welcome-title">
      <img src="/icon.svg" alt="" width="48" height="48" />
      <h2 id="welcome-title">Ask your documents</h2>
      <p>Answers come with their sources, and you can ask on from there.</p>
      {settled && (
        <p class="welcome-where">
          You are asking{' '}
          <button type="button" class="link" onClick={open}>
            {where}
          </button>
          .
        </p>
      )}
      <ul class="first-questions">
        {questions.slice(0, MOST).map((question) => (
          <li key={question}>
            <button type="button" class="suggestion ends" onClick={() => chat.ask(question)}>
              <span>{question}</span>
              <Icon name="right" />
            </button>
          </li>
        ))}
      </ul>
      <p class="welcome-own line">
        <Icon name="upload" />
        <span>
          Your own content? Drop a folder anywhere on this page, <a href={to(['import'])}>choose files</a>, or{' '}
          <a href={to(['start'])}>name your website</a>.
        </span>
      </p>
    </section>
  )
}

function questionsOf(data: Choices | undefined, assistant: string, collection: string): string[] {
  const own = data?.assistants?.find(({ name }) => name === assistant)?.questions
  const { questions } = data?.collections?.find(({ name }) => name === collection)?.metadata ?? {}
  if (assistant !== '') return own ?? []
  return Array.isArray(questions) ? questions.map(String) : []
}

/** What there has to be before anything can be asked; undefined where nothing is missing, or the key may not say. */
function missingOf(data: Choices | undefined, assistant: string): string | undefined {
  if (assistant !== '') return undefined
  if (data?.collections?.length === 0)
    return 'There is nothing to ask yet. Name your website, or drop a folder of documents on this page, and ask in a minute.'
  if (data?.models?.length === 0) return 'Your content is here. Now choose who answers from it.'
  return undefined
}
