/** Conversation models: the list, a new one, and a test with one question. */
import { useState } from 'preact/hooks'
import { Refusal, read, send, useLoaded } from '../api'
import { loadChoices, type Model } from '../chat/choices'
import { Confirm } from '../parts/dialog'
import { duration } from '../parts/format'
import { Icon } from '../parts/icon'
import { Page } from '../parts/page'
import { Empty, Loading, Problem } from '../parts/states'
import { NewModel } from './new-model'

export default function Models() {
  const list = useLoaded('models', (signal) => read<Model[]>('/conversations/models', signal))
  const choices = useLoaded('choices', loadChoices)
  const [making, setMaking] = useState(false)
  const [removing, setRemoving] = useState<Model>()
  const { data } = list
  const button = (
    <button type="button" class="button primary" onClick={() => setMaking(true)}>
      <Icon name="plus" />
      New model
    </button>
  )
  return (
    <Page
      title="Models"
      lead="A conversation model says which language model writes answers, and where conversations are kept."
      actions={data && data.length > 0 && button}
    >
      {list.loading && <Loading />}
      {list.error && <Problem error={list.error} retry={list.reload} />}
      {data?.length === 0 && (
        <Empty icon="models" title="No models yet">
          <p>The built-in model needs no account. Others take a key of their provider.</p>
          {button}
        </Empty>
      )}
      {data && data.length > 0 && (
        <ul class="cards">
          {data.map((each) => (
            <li key={each.id} class="item">
              <div class="item-main">
                <strong>{each.id}</strong>
                <p class="soft">
                  {each.model_name} · conversations in {each.history_collection}
                </p>
              </div>
              <Test model={each} collection={choices.data?.collections?.[0]?.name} />
              <button
                type="button"
                class="tool"
                aria-label={`Delete the model ${each.id}`}
                title="Delete"
                onClick={() => setRemoving(each)}
              >
                <Icon name="bin" />
              </button>
            </li>
          ))}
        </ul>
      )}
      {making && (
        <NewModel
          close={(made) => {
            setMaking(false)
            if (made) list.reload()
          }}
        />
      )}
      {removing && (
        <Confirm
          title={`Delete ${removing.id}?`}
          action="Delete the model"
          run={async () => {
            await send('DELETE', `/conversations/models/${encodeURIComponent(removing.id)}`)
            list.reload()
          }}
          close={() => setRemoving(undefined)}
        >
          <p>
            Assistants and keys that name it cannot ask any more. Its conversations stay until they expire.
          </p>
        </Confirm>
      )}
    </Page>
  )
}

type Tested = { state: 'asking' } | { state: 'good'; ms: number } | { state: 'bad'; message: string }

/** Asks one question, whose conversation is deleted again. */
function Test({ model, collection }: { model: Model; collection: string | undefined }) {
  const [tested, setTested] = useState<Tested>()
  const run = async () => {
    setTested({ state: 'asking' })
    const began = performance.now()
    try {
      const { conversation_id: id } = await send<{ conversation_id: string }>('POST', '/conversations', {
        question: 'What is this about?',
        model: model.id,
        collections: [collection],
      })
      setTested({ state: 'good', ms: performance.now() - began })
      await send('DELETE', `/conversations/${encodeURIComponent(id)}`)
    } catch (error) {
      setTested({ state: 'bad', message: error instanceof Refusal ? error.message : String(error) })
    }
  }
  return (
    <>
      <span role="status" class="test-state">
        {tested?.state === 'asking' && <span class="badge">asking …</span>}
        {tested?.state === 'good' && <span class="badge good">answered in {duration(tested.ms)}</span>}
        {tested?.state === 'bad' && <span class="bad">{tested.message}</span>}
      </span>
      <button
        type="button"
        class="button"
        disabled={collection === undefined || tested?.state === 'asking'}
        title={collection === undefined ? 'Import documents first: a test asks one question about them.' : ''}
        onClick={run}
      >
        Test
      </button>
    </>
  )
}
