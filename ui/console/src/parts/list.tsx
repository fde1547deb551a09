/** Lists of every page: while they load, when they are empty, when they failed, and how to get at the rest of them. */
import type { ComponentChildren } from 'preact'
import type { Loaded, PagedList } from '../api'
import { Button } from './button'
import { count } from './format'
import { Icon, type IconName } from './icon'
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
