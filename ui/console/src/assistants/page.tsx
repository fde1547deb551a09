/** Assistants: the list, and one to change beside a live preview of its widget. */
import { useState } from 'preact/hooks'
import { place, to } from '../address'
import { read, send, useLoaded } from '../api'
import { Confirm } from '../parts/dialog'
import { many } from '../parts/format'
import { Icon } from '../parts/icon'
import { Page } from '../parts/page'
import { Empty, Loading, Problem } from '../parts/states'
import { AssistantPage } from './assistant'
import type { StoredAssistant } from './wire'

export default function Assistants() {
  const [name] = place.value.rest
  return name === undefined ? <List /> : <AssistantPage key={name} name={name} />
}

function List() {
  const list = useLoaded('assistants', (signal) =>
    read<{ assistants: StoredAssistant[] }>('/assistants', signal),
  )
  const [removing, setRemoving] = useState<string>()
  const assistants = list.data?.assistants
  const button = (
    <a class="button primary" href={to(['assistants', 'new'])}>
      <Icon name="plus" />
      New assistant
    </a>
  )
  return (
    <Page
      title="Assistants"
      lead="An assistant is collections, a model and instructions under one name. The widget and chat clients ask it."
      actions={assistants && assistants.length > 0 && button}
    >
      {list.loading && <Loading />}
      {list.error && <Problem error={list.error} retry={list.reload} />}
      {assistants?.length === 0 && (
        <Empty icon="assistants" title="No assistants yet">
          <p>Make one over your collections, try it here, and paste it into a page.</p>
          {button}
        </Empty>
      )}
      {assistants && assistants.length > 0 && (
        <ul class="cards">
          {assistants.map(({ name, model, collections = [], searches = [], questions }) => (
            <li key={name} class="item">
              <div class="item-main">
                <a class="item-name" href={to(['assistants', name])}>
                  {name}
                </a>
                <p class="soft">
                  searches {[...collections, ...searches.map(({ collection }) => collection)].join(', ')} ·
                  answers with {model}
                </p>
              </div>
              {questions.length > 0 && <span class="badge">{many(questions.length, 'first question')}</span>}
              <button
                type="button"
                class="tool"
                aria-label={`Delete the assistant ${name}`}
                title="Delete"
                onClick={() => setRemoving(name)}
              >
                <Icon name="bin" />
              </button>
            </li>
          ))}
        </ul>
      )}
      {removing !== undefined && (
        <Confirm
          title={`Delete ${removing}?`}
          action="Delete the assistant"
          run={async () => {
            await send('DELETE', `/assistants/${encodeURIComponent(removing)}`)
            list.reload()
          }}
          close={() => setRemoving(undefined)}
        >
          <p>Pages that show it stop answering. Its collections and conversations stay.</p>
        </Confirm>
      )}
    </Page>
  )
}
