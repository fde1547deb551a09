/** Lists of every page: while they load, when they are empty, when they failed, how to get at the rest, and what each thing can do. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { go, place, to } from '../address'
import type { Loaded, PagedList } from '../api'
import { Button, Tool } from './button'
import { Confirm } from './dialog'
import { count } from './format'
import { Icon, type IconName } from './icon'
import { Page } from './page'
import { Empty, Problem, Shown } from './states'

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
  class: 'cards' | 'rows' | 'results'
  /** whether its order says something, such as best first */
  ordered?: boolean
  /** grey lines while it loads */
  lines?: number
  /** what loads, for screen readers */
  label?: string
  item: (each: T, index: number) => ComponentChildren
  /** what stands above and below the items, such as a pager */
  before?: ComponentChildren
  after?: ComponentChildren
}

export function List<T>({
  of,
  empty,
  class: className,
  ordered,
  item,
  before,
  after,
  ...loading
}: ListProps<T>) {
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

/** Loads more of a list that has no numbered pages. @param title what the button says */
export const More = <T,>({ of: { data = [], more }, title }: { of: PagedList<T>; title: string }) =>
  more && (
    <>
      {more.error && <Problem error={more.error} />}
      <div class="pager">
        <Button label={more.busy ? 'Loading …' : title} disabled={more.busy} onClick={() => more.start()} />
        <span class="soft">{count(data.length)} loaded</span>
      </div>
    </>
  )

interface PagerProps {
  /** the one that is shown, from 1 */
  page: number
  last: number
  label: string
  turn: (page: number) => void
}

/** Turns numbered pages. Nothing where there is only one. */
export const Pager = ({ page, last, label, turn }: PagerProps) =>
  (last > 1 || page > 1) && (
    <nav class="pager" aria-label={label}>
      <Button
        label="Previous"
        icon="left"
        disabled={page <= 1}
        onClick={() => turn(Math.min(page - 1, last))}
      />
      <span class="soft">
        Page {count(page)} of {count(last)}
      </span>
      <button type="button" class="button" disabled={page >= last} onClick={() => turn(page + 1)}>
        Next
        <Icon name="right" />
      </button>
    </nav>
  )

// =============================================================================
// A page that lists things of one kind, and what each of them can do.

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
