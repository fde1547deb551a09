/** What a page says while it loads, when it has nothing to show and when something failed. */
import type { ComponentChildren } from 'preact'
import { forgetKey, type Loaded, type Refusal } from '../api'
import { Button } from './button'
import { Icon, type IconName } from './icon'

export function Empty({
  icon,
  title,
  children,
}: {
  icon: IconName
  title: string
  children?: ComponentChildren
}) {
  return (
    <div class="empty pile">
      <span class="empty-icon">
        <Icon name={icon} />
      </span>
      <h2>{title}</h2>
      {children}
    </div>
  )
}

interface NoticeProps {
  icon?: IconName
  /** whether it went well */
  good?: boolean
  /** a paragraph, and buttons */
  children: ComponentChildren
}

/** What went well, or did not. */
export const Notice = ({ icon, good = false, children }: NoticeProps) => (
  <div class={good ? 'notice line good' : 'notice line bad'} role={good ? 'status' : 'alert'}>
    {icon && <Icon name={icon} />}
    {children}
  </div>
)

/** A fault with what to do about it. */
export function Problem({ error, retry }: { error: Refusal; retry?: () => void }) {
  const isKey = error.status === 401 || error.status === 403
  const isGone = error.status === 404
  return (
    <Notice icon="warning">
      <p>
        {error.message}
        {isGone && ' It may have been deleted, or the link is mistyped.'}
      </p>
      {isKey && <Button label="Switch key" onClick={forgetKey} />}
      {retry && <Button label="Try again" onClick={retry} />}
    </Notice>
  )
}

interface ShownProps<T> {
  of: Omit<Loaded<T>, 'set'>
  /** grey lines while it loads */
  lines?: number
  /** what loads, for screen readers */
  label?: string
  children: (data: T) => ComponentChildren
}

/** Data once it is there: until then that it loads, or why it does not. */
export const Shown = <T,>({ of: { data, error, reload }, children, ...loading }: ShownProps<T>) => (
  <>
    {error && <Problem error={error} retry={reload} />}
    {data === undefined ? !error && <Loading {...loading} /> : children(data)}
  </>
)

/** Grey lines in the place of what is to come. */
export const Loading = ({ lines = 4, label = 'Loading' }: { lines?: number; label?: string }) => (
  <div class="loading pile" role="status">
    <span class="hidden">{label}</span>
    {Array.from({ length: lines }, (_, index) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: the lines are all alike
      <span key={index} class="bone" aria-hidden="true" />
    ))}
  </div>
)
