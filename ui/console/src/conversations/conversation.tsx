/** A conversation to read, export and delete. */
import { useState } from 'preact/hooks'
import { go, NEW, pageOf, to, toConversation } from '../address'
import { send, useLoaded } from '../api'
import { chat } from '../chat/chat'
import { citedIn, refOf, useTitles } from '../chat/titles'
import type { PromptSource } from '../chat/wire'
import { Button } from '../parts/button'
import { Confirm, Form, useDraft } from '../parts/form'
import { ago, download, duration, many, when } from '../parts/format'
import { Badges, Card, Page, Shown } from '../parts/page'
import { Prose } from '../parts/prose'
import { Calls } from './calls'
import { asMarkdown, failedTurns, faultsOf, type RecordedTurn, readConversation } from './record'
import { Doubted, Said } from './said'

export function ConversationPage({ id }: { id: string }) {
  const loaded = useLoaded(`conversation ${id}`, (signal) => readConversation(id, signal))
  const failed = useLoaded(`failed ${id}`, (signal) => failedTurns(id, signal))
  const [removing, setRemoving] = useState(false)
  const { data } = loaded
  const called = useTitles(citedIn(data?.turns.flatMap(({ citations }) => citations) ?? []))
  return (
    <Page
      title={data?.title ?? 'Conversation'}
      up={{ title: 'Conversations', href: to(['conversations']) }}
      lead={
        data && (
          <>
            {many(data.turns.length, 'turn')} · {data.protocol} · {data.model_id}
            {data.user_id !== '' && ` · ${data.user_id}`} · started {when(data.created_at)} · expires{' '}
            {when(data.expires_at)}
          </>
        )
      }
      actions={
        data && (
          <>
            <Button
              label="JSON"
              icon="download"
              onClick={() => download(`${id}.json`, 'application/json', JSON.stringify(data, null, 2))}
            />
            <Button
              label="Markdown"
              icon="download"
              onClick={() => download(`${id}.md`, 'text/markdown', asMarkdown(data))}
            />
            <Button label="Delete" icon="bin" onClick={() => setRemoving(true)} />
            <Button label="Open in the chat" kind="primary" icon="chat" href={toConversation(id)} />
          </>
        )
      }
    >
      <Shown of={loaded}>
        {({ turns, handed_over_at }) => (
          <>
            {turns.map((turn) => (
              <Turn key={turn.turn} of={id} turn={turn} called={called} />
            ))}
            {handed_over_at !== undefined && <Reply to={id} asked={handed_over_at} done={loaded.reload} />}
          </>
        )}
      </Shown>
      {(failed.data?.length ?? 0) > 0 && (
        <Card title={`Failed: ${failed.data?.length}`}>
          <ul class="faults pile">
            {failed.data?.map(({ turn, question, created_at, error }) => (
              <li key={turn} class="line">
                <span dir="auto">{question}</span>
                <span class="soft">{when(created_at)}</span>
                <span class="bad">{error.message}</span>
              </li>
            ))}
          </ul>
        </Card>
      )}
      {removing && (
        <Confirm
          title="Delete this conversation?"
          action="Delete"
          run={async () => {
            await send('DELETE', `/conversations/${encodeURIComponent(id)}`)
            go(to(['conversations']))
          }}
          close={() => setRemoving(false)}
        >
          <p>Its questions, answers and traces are deleted for good.</p>
        </Confirm>
      )}
    </Page>
  )
}

/** What a person says to a visitor who asked for one. */
function Reply({ to: id, asked, done }: { to: string; asked: number; done: () => void }) {
  const { draft, text, set } = useDraft({ author: '', message: '' })
  const save = async () => {
    await send('POST', `/conversations/${encodeURIComponent(id)}/replies`, draft)
    set({ message: '' })
    done()
  }
  return (
    <Card title={`Asked for a person ${ago(asked)}`}>
      <Form class="form" action="Reply" busy="Sending …" save={save}>
        {text('author', 'Your name', { required: true })}
        {text('message', 'Message', { required: true, rows: 3 })}
      </Form>
    </Card>
  )
}

/** Asks a question anew in the chat, in a conversation of its own and with the settings of the chat. */
function askAgain(question: string): void {
  const { session } = chat()
  session.leave()
  go(NEW)
  chat().ask(question)
}

interface TurnProps {
  /** id of the conversation */
  of: string
  turn: RecordedTurn
  called: (ref: PromptSource) => string
}

function Turn({ of, turn, called }: TurnProps) {
  const { question, standalone, answer, citations, usage, timings, created_at, ...more } = turn
  const { calls, feedback, support, author } = more
  const sources = citedIn(citations)
  const a = `${of}/${turn.turn}`
  return (
    <article class="read-turn">
      <h2 dir="auto">{author ?? question}</h2>
      {standalone !== undefined && standalone !== question && (
        <p class="hint" dir="auto">
          Searched as: {standalone}
        </p>
      )}
      <Prose answer={answer} citations={citations} />
      {sources.length > 0 && (
        <ol class="read-sources line">
          {sources.map((source, index) => (
            <li key={refOf(source)} class="line">
              <span class="number">{index + 1}</span>
              <a href={pageOf(refOf(source))} dir="auto">
                {called(source)}
              </a>
            </li>
          ))}
        </ol>
      )}
      <p class="turn-meta line aside">
        <span>{when(created_at)}</span>
        <span>{usage.model}</span>
        {timings.finished !== undefined && <span>{duration(timings.finished)}</span>}
        {author === undefined && (
          <>
            <Badges of={faultsOf(turn)} kind="warn" />
            <Button label="Ask again" kind="pill" icon="again" onClick={() => askAgain(question)} />
            <Button label="Fix this answer" kind="pill" icon="edit" href={to(['fix'], { a })} />
          </>
        )}
      </p>
      <Calls of={calls} />
      <Doubted answer={answer} support={support} />
      <Said feedback={feedback} />
    </article>
  )
}
