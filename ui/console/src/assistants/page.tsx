/** Assistants: the list, and one to change beside a live preview of its widget. */
import { place, to } from '../address'
import { mapped, send, useRead } from '../api'
import { Button } from '../parts/button'
import { many } from '../parts/format'
import { Item, ListPage } from '../parts/list-page'
import { NotFound } from '../parts/not-found'
import { AssistantPage } from './assistant'
import type { StoredAssistant } from './wire'

export default function Assistants() {
  const [name, more] = place.value.rest
  if (more !== undefined) return <NotFound />
  return name === undefined ? <List /> : <AssistantPage key={name} name={name} />
}

function List() {
  const list = useRead<{ assistants: StoredAssistant[] }>('/assistants')
  return (
    <ListPage
      title="Assistants"
      lead="An assistant is collections, a model and instructions under one name. The widget and chat clients ask it."
      list={mapped(list, ({ assistants }) => assistants)}
      empty={{
        icon: 'assistants',
        title: 'No assistants yet',
        text: 'Make one over your collections, try it here, and paste it into a page.',
      }}
      action={<Button label="New assistant" kind="primary" icon="plus" href={to(['assistants', 'new'])} />}
      item={({ name, model, collections = [], searches = [], questions }) => (
        <Item
          key={name}
          name={name}
          href={to(['assistants', name])}
          about={`searches ${[...collections, ...searches.map(({ collection }) => collection)].join(', ')} · answers with ${model}`}
          called={`the assistant ${name}`}
          remove={{
            action: 'Delete the assistant',
            says: <p>Pages that show it stop answering. Its collections and conversations stay.</p>,
            run: () => send('DELETE', `/assistants/${encodeURIComponent(name)}`).then(list.reload),
          }}
        >
          {questions.length > 0 && <span class="badge">{many(questions.length, 'first question')}</span>}
        </Item>
      )}
    />
  )
}
