/** Lists of every page: while they load, when they are empty, when they failed, how to get at the rest, and what each thing can do. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { go, place, to } from '../address'
import { type Loaded, send } from '../api'
import { Button, Copy, type IconName, Tool } from './button'
import { Confirm } from './form'
import { Empty, Page, Shown } from './page'

export interface EmptyProps {
  icon: IconName
  title: string
  text: string
  /** what to do about it */
  action?: ComponentChildren
}

interface ListProps<T> {
  of: Omit<Loaded<T[]>, 'set'>
  /** what is said while there is nothing to list */
  empty: EmptyProps
  class: 'pile' | 'rows frame' | 'results apart'
  /** whether its order says something, such as best first */
  ordered?: boolean
  /** what loads, for screen readers */
  label?: string
  item: (each: T, index: number) => ComponentChildren
  /** what stands above and below the items, such as a pager */
  before?: ComponentChildren
  after?: ComponentChildren
}

export function List<T>({ of, empty, class: className, ordered, item, ...more }: ListProps<T>) {
  const { before, after, ...loading } = more
  const Items = ordered ? 'ol' : 'ul'
  return (
    <Shown of={of} {...loading}>
      {(all) => (
        <>
          {before}
          {all.length === 0 ? (
            <Empty icon={empty.icon} title={empty.title}>
              <p>{empty.text}</p>
              {empty.action}
            </Empty>
          ) : (
            <Items class={className}>{all.map(item)}</Items>
          )}
          {after}
        </>
      )}
    </Shown>
  )
}

// =============================================================================
// A page that lists things of one kind, and what each of them can do.

interface ItemProps {
  name: string
  /** absent: it has no page of its own */
  href?: string
  about: ComponentChildren
  /** badges and buttons */
  children?: ComponentChildren
}

export const Item = ({ name, href, about, children }: ItemProps) => (
  <li class="item line frame">
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
  </li>
)

/** A thing of a page that lists them. */
interface Listed extends ItemProps {
  /** what DELETE is asked of, and what that does besides */
  path: string
  says: ComponentChildren
  /** its name in a sentence, where it has another one there */
  called?: string
  /** what the question says of it; its name, where that is absent */
  what?: string
  /** what the button of the question says; `Delete the model` */
  action?: string
}

interface ListPageProps<T> {
  title: string
  lead: string
  /** what one of them is called, such as `model` */
  kind: string
  list: Omit<Loaded<T[]>, 'set'>
  /** what the page says while there is nothing to list */
  empty: Omit<EmptyProps, 'action'>
  item: (each: T) => Listed
  /** the form that changes one */
  edit?: (each: T, close: () => void) => ComponentChildren
  /** the form for one more, open where the address says `new=1` */
  form?: (close: () => void) => ComponentChildren
  /** one more as it begins, where the form that changes one makes it */
  begin?: T
  /** makes one more, where no form of the page does */
  action?: ComponentChildren
  /** what stands above the list */
  above?: ComponentChildren
  /** dialogs */
  children?: ComponentChildren
}

export function ListPage<T>({ title, lead, kind, list, empty, item, edit, ...more }: ListPageProps<T>) {
  const { form, begin, above, children } = more
  const [edited, setEdited] = useState<T>()
  const [removed, setRemoved] = useState<Listed>()
  const { page, query } = place.value
  const opens = begin ? { onClick: () => setEdited(begin) } : { href: to([page], { new: '1' }) }
  const action = more.action ?? <Button label={`New ${kind}`} kind="primary" icon="plus" {...opens} />
  const close = () => {
    // A form that leads elsewhere has left the page.
    if (place.peek().query.has('new')) go(to([page]), { replace: true })
    setEdited(undefined)
    list.reload()
  }
  const itemOf = (each: T) => {
    const shown = item(each)
    const called = `the ${kind} ${shown.called ?? shown.name}`
    return (
      <Item key={shown.path} {...shown}>
        {shown.children}
        {edit && <Tool icon="edit" label="Edit" of={called} onClick={() => setEdited(each)} />}
        <Tool icon="bin" label="Delete" of={called} onClick={() => setRemoved(shown)} />
      </Item>
    )
  }
  return (
    <Page title={title} lead={lead} actions={list.data && list.data.length > 0 && action}>
      {above}
      <List of={list} empty={{ ...empty, action }} class="pile" item={itemOf} />
      {query.has('new') && form?.(close)}
      {edited && edit?.(edited, close)}
      {removed && (
        <Confirm
          title={`Delete ${removed.what ?? removed.name}?`}
          action={removed.action ?? `Delete the ${kind}`}
          run={() => send('DELETE', removed.path).then(list.reload)}
          close={() => setRemoved(undefined)}
        >
          <div>{removed.says}</div>
        </Confirm>
      )}
      {children}
    </Page>
  )
}

// =============================================================================
// Tables and texts, which scroll where they are wider than their place.

interface TableProps {
  /** what is false is left out */
  head: ComponentChildren[]
  /** the column from which on there are numbers, whose cells have the class `number-cell`; absent: none */
  numbers?: number
  class?: string
  /** of a table that may scroll by the keyboard */
  label?: string
  /** rows */
  children: ComponentChildren
}

export function Table({ head, numbers = Infinity, class: own = '', label, children }: TableProps) {
  const table = (
    <table class={`table ${own}`}>
      <thead>
        <tr>
          {head.filter(Boolean).map((cell, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: columns keep their order
            <th key={index} scope="col" class={index >= numbers ? 'number-cell' : undefined}>
              {cell}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  )
  if (label === undefined) return <div class="table-scroll frame">{table}</div>
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached with the keyboard
    <section class="table-scroll frame" tabIndex={0} aria-label={label}>
      {table}
    </section>
  )
}

interface RawProps {
  name: string
  text: string
  /** what is said of the button that copies it, and of the whole for screen readers */
  copy?: string
  label?: string
}

/** A text as it is, which scrolls where it is long and can be copied. */
export const Raw = ({ name, text, copy = `Copy: ${name}`, label = name }: RawProps) => (
  <div class="message apart">
    <div class="message-head ends">
      <span>{name}</span>
      <Copy text={text} label={copy} />
    </div>
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached with the keyboard */}
    <section class="raw" aria-label={label} tabIndex={0}>
      <pre>{text}</pre>
    </section>
  </div>
)
