/** The latest conversations that this browser began, in the menu: to open, rename and delete. Visitors' are on a page of their own. */
import { useRef, useState } from 'preact/hooks'
import { go, NEW, place, toConversation } from '../address'
import { key, read, send, useAction, useKept, useLoaded } from '../api'
import { Tool } from '../parts/button'
import { Confirm } from '../parts/form'
import { chat as currentChat } from './chat'
import type { Summary } from './wire'

const MOST = 30

export function Recent() {
  const chat = currentChat()
  // A conversation that begins is listed as soon as it has an id.
  const list = useKept(
    useLoaded(`recent ${key.value} ${chat.ended.value} ${chat.turns.value.length > 0}`, (signal) =>
      read<{ conversations: Summary[] }>(`/conversations?mine=true&limit=${MOST}`, signal),
    ),
  )
  const shown = list.data?.conversations ?? []
  const [renaming, setRenaming] = useState<string>()
  const [removing, setRemoving] = useState<Summary>()
  const { page, rest } = place.value
  const open = page === 'chat' ? rest[0] : undefined

  const rename = useAction(async (id: string, title: string) => {
    setRenaming(undefined)
    await send('PATCH', `/conversations/${encodeURIComponent(id)}`, { title })
    list.reload()
  })
  const remove = async ({ id }: Summary) => {
    await send('DELETE', `/conversations/${encodeURIComponent(id)}`)
    if (id === open) go(NEW)
    list.reload()
  }

  return (
    <section class="recent" aria-labelledby="recent-title">
      <h2 id="recent-title">Recent</h2>
      {rename.error && (
        <p class="recent-note aside bad" role="alert">
          {rename.error.message}
        </p>
      )}
      {list.error && <p class="recent-note aside">{list.error.message}</p>}
      {!list.error && !list.loading && shown.length === 0 && (
        <p class="recent-note aside">Conversations that you begin are listed here.</p>
      )}
      <ul>
        {shown.map((each) => (
          <li key={each.id} class={each.id === open ? 'recent-item current' : 'recent-item'}>
            {renaming === each.id ? (
              <Rename
                title={each.title}
                save={(title) => rename.start(each.id, title)}
                cancel={() => setRenaming(undefined)}
              />
            ) : (
              <>
                <a
                  class="cut"
                  href={toConversation(each.id)}
                  aria-current={each.id === open ? 'page' : undefined}
                  title={each.title}
                  dir="auto"
                >
                  {each.title || 'Untitled'}
                </a>
                <span class="recent-tools">
                  <Tool
                    icon="edit"
                    label="Rename"
                    of={each.title || 'Untitled'}
                    small
                    onClick={() => setRenaming(each.id)}
                  />
                  <Tool
                    icon="bin"
                    label="Delete"
                    of={each.title || 'Untitled'}
                    small
                    onClick={() => setRemoving(each)}
                  />
                </span>
              </>
            )}
          </li>
        ))}
      </ul>
      {removing && (
        <Confirm
          title="Delete this conversation?"
          action="Delete"
          run={() => remove(removing)}
          close={() => setRemoving(undefined)}
        >
          <p>“{removing.title}” and its answers are deleted for good.</p>
        </Confirm>
      )}
    </section>
  )
}

interface RenameProps {
  title: string
  save: (title: string) => void
  cancel: () => void
}

function Rename({ title, save, cancel }: RenameProps) {
  const done = useRef(false)
  const finish = (value: string) => {
    if (done.current) return
    done.current = true
    if (value.trim() === '' || value.trim() === title) cancel()
    else save(value.trim())
  }
  return (
    <input
      class="input small"
      aria-label="Title"
      maxLength={200}
      dir="auto"
      ref={(element) => {
        if (element && document.activeElement !== element && !done.current) {
          element.focus()
          element.select()
        }
      }}
      defaultValue={title}
      onKeyDown={(event) => {
        event.stopPropagation()
        if (event.key === 'Enter') finish(event.currentTarget.value)
        if (event.key === 'Escape') finish(title)
      }}
      onBlur={(event) => finish(event.currentTarget.value)}
    />
  )
}
