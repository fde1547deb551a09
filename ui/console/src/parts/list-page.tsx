/** A page that lists things of one kind, and what each of them can do. */
import type { ComponentChildren } from 'preact'
import type { Loaded } from '../api'
import { Icon } from './icon'
import { type EmptyProps, List } from './list'
import { Page } from './page'

interface ListPageProps<T> {
  title: string
  lead: string
  list: Omit<Loaded<T[]>, 'set'>
  /** what the page says while there is nothing to list */
  empty: Omit<EmptyProps, 'action'>
  /** makes one more */
  action: ComponentChildren
  item: (each: T) => ComponentChildren
  /** dialogs */
  children?: ComponentChildren
}

export const ListPage = <T,>({ title, lead, list, empty, action, item, children }: ListPageProps<T>) => (
  <Page title={title} lead={lead} actions={list.data && list.data.length > 0 && action}>
    <List of={list} empty={{ ...empty, action }} class="cards" item={item} />
    {children}
  </Page>
)

interface ItemProps {
  name: string
  /** absent: it has no page of its own */
  href?: string
  about: ComponentChildren
  /** what the button that deletes it says of it, such as `the key page of help` */
  called?: string
  remove?: () => void
  /** badges and buttons */
  children?: ComponentChildren
}

export const Item = ({ name, href, about, called, remove, children }: ItemProps) => (
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
    {remove && (
      <button type="button" class="tool" aria-label={`Delete ${called}`} title="Delete" onClick={remove}>
        <Icon name="bin" />
      </button>
    )}
  </li>
)
