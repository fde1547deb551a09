/** A page that lists things of one kind, and what each of them can do. */
import type { ComponentChildren } from 'preact'
import type { Loaded } from '../api'
import { Icon, type IconName } from './icon'
import { Page } from './page'
import { Empty, Shown } from './states'

interface ListPageProps<T> {
  title: string
  lead: string
  list: Omit<Loaded<T[]>, 'set'>
  /** what the page says while there is nothing to list */
  empty: { icon: IconName; title: string; text: string }
  /** makes one more */
  action: ComponentChildren
  item: (each: T) => ComponentChildren
  /** dialogs */
  children?: ComponentChildren
}

export function ListPage<T>({ title, lead, list, empty, action, item, children }: ListPageProps<T>) {
  return (
    <Page title={title} lead={lead} actions={list.data && list.data.length > 0 && action}>
      <Shown of={list}>
        {(all) =>
          all.length === 0 ? (
            <Empty icon={empty.icon} title={empty.title}>
              <p>{empty.text}</p>
              {action}
            </Empty>
          ) : (
            <ul class="cards">{all.map(item)}</ul>
          )
        }
      </Shown>
      {children}
    </Page>
  )
}

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
