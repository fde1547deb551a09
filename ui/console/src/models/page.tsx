/** Conversation models: the list, a new one, and a test with one question. */
import { useState } from 'preact/hooks'
import { send, useAction, useLoaded, useRead } from '../api'
import { loadChoices, type Model } from '../chat/choices'
import { Button } from '../parts/button'
import { duration } from '../parts/format'
import { ListPage } from '../parts/list'
import { EditModel, makeHistory, missingOf, NewModel, pathOf } from './model-dialog'

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
      <Button label="Make an empty one" disabled={busy} onClick={() => start()} />
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
        onClick={() => start()}
      />
    </>
  )
}
