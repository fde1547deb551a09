/** A page that lists things of one kind, and what each of them can do. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { go, place, to } from '../address'
import type { Loaded } from '../api'
import { Button, Tool } from './button'
import { Confirm } from './dialog'
import { type EmptyProps, List } from './list'
import { Page } from './page'

interface ListPageProps<T> {
  title: string
  lead: string
  list: Omit<Loaded<T[]>, 'set'>
  /** what the page says while there is nothing to list */
  empty: Omit<EmptyProps, 'action'>
  /** the address of the page, and what the link to the form for one more says */
  page?: string
  fresh?: string
  /** the form, open where the address says `new=1` */
  form?: (close: () => void) => ComponentChildren
  /** makes one more, where that is no form of the page */
  action?: ComponentChildren
  item: (each: T) => ComponentChildren
  /** what stands above the list */
  above?: ComponentChildren
  /** dialogs */
  children?: ComponentChildren
}

export function ListPage<T>({ title, lead, list, empty, item, above, children, ...more }: ListPageProps<T>) {
  const { page = '', fresh, form } = more
  const action = more.action ?? (
    <Button label={fresh ?? ''} kind="primary" icon="plus" href={to([page], { new: '1' })} />
  )
  const close = () => {
    // A form that leads elsewhere has left the page.
    if (place.peek().query.has('new')) go(to([page]), { replace: true })
    list.reload()
  }
  return (
    <Page title={title} lead={lead} actions={list.data && list.data.length > 0 && action}>
      {above}
      <List of={list} empty={{ ...empty, action }} class="cards" item={item} />
      {place.value.query.has('new') && form?.(close)}
      {children}
    </Page>
  )
}

interface Removal {
  /** what the question says of it: its name where there is nothing else to say */
  what?: string
  /** what the button does; `Delete the model` */
  action?: string
  /** what happens then */
  says: ComponentChildren
  run: () => Promise<unknown>
}

interface ItemProps {
  name: string
  /** absent: it has no page of its own */
  href?: string
  about: ComponentChildren
  /** what the buttons that change and delete it say of it, such as `the key page of help` */
  called?: string
  edit?: () => void
  remove?: Removal
  /** badges and buttons */
  children?: ComponentChildren
}

export function Item({ name, href, about, called, edit, remove, children }: ItemProps) {
  const [removing, setRemoving] = useState(false)
  return (
    <li class="item">
      <div class="item-main">
        {href === undefined ? (
          <strong>{name}</strong>
        ) : (
          <a class="item-name" href={href} dir="auto">
            {name}
          </a>
        )}
        <p class="soft">{about}</p>
      </div>
      {children}
      {edit && <Tool icon="edit" label={`Edit ${called}`} title="Edit" onClick={edit} />}
      {remove && (
        <Tool icon="bin" label={`Delete ${called}`} title="Delete" onClick={() => setRemoving(true)} />
      )}
      {remove && removing && (
        <Confirm
          title={`Delete ${remove.what ?? name}?`}
          action={remove.action ?? 'Delete'}
          run={remove.run}
          close={() => setRemoving(false)}
        >
          <div>{remove.says}</div>
        </Confirm>
      )}
    </li>
  )
}
