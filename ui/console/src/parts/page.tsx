/** The frame of a page: its title, where it belongs, its views, what can be done on it, and what it says while there is nothing to show. */
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { NEW } from '../address'
import { forgetKey, type Loaded, type Refusal, useAction } from '../api'
import { Button, type ButtonProps, Icon, type IconName } from './button'

interface PageProps {
  title: string
  /** the page above this one */
  up?: { title: string; href: string }
  /** a sentence on what the page is for */
  lead?: ComponentChildren
  actions?: ComponentChildren
  children: ComponentChildren
}

export function Page({ title, up, lead, actions, children }: PageProps) {
  useTitle(title)
  return (
    <div class="page">
      <header class="page-head ends">
        <div class="page-name">
          {up && (
            <a class="up" href={up.href}>
              <Icon name="left" />
              {up.title}
            </a>
          )}
          <h1 tabIndex={-1}>{title}</h1>
          {lead && <p class="lead">{lead}</p>}
        </div>
        {actions && <div class="line">{actions}</div>}
      </header>
      {children}
    </div>
  )
}

interface CardProps {
  title: string
  /** what stands at the end of its head */
  beside?: ComponentChildren
  children: ComponentChildren
}

/** A part of a page, in a frame. */
export const Card = ({ title, beside, children }: CardProps) => (
  <section class="panel-card frame">
    <div class="ends">
      <h2>{title}</h2>
      {beside}
    </div>
    {children}
  </section>
)

interface BadgesProps {
  /** what is false is left out */
  of: (string | false | undefined)[]
  kind?: 'warn'
}

/** Short facts beside a thing. Nothing where there is none. */
export function Badges({ of, kind }: BadgesProps) {
  const shown = of.filter((each) => typeof each === 'string')
  return (
    shown.length > 0 && (
      <span class="line">
        {shown.map((each) => (
          <span key={each} class={kind ? `badge ${kind}` : 'badge'}>
            {each}
          </span>
        ))}
      </span>
    )
  )
}

/** The title of the browser's tab. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title === '' ? 'Parley' : `${title} · Parley`
  }, [title])
}

/** Views of one thing, each at an address of its own. */
interface TabsProps {
  label: string
  current: string
  tabs: { id: string; title: string; href: string }[]
}

export const Tabs = ({ label, current, tabs }: TabsProps) => (
  <nav class="tabs" aria-label={label}>
    {tabs.map(({ id, title, href }) => (
      <a key={id} href={href} aria-current={id === current ? 'page' : undefined}>
        {title}
      </a>
    ))}
  </nav>
)

interface StepProps {
  title: string
  done?: boolean
  /** the number of a step that has to be done first */
  waits?: number | undefined
  children: ComponentChildren
}

/** A step of a page that leads through several, within a list of the class `steps`. */
export const Step = ({ title, done = false, waits, children }: StepProps) => (
  <li class={done ? 'step done' : 'step'}>
    <div class="panel-card frame form">
      <h2 class="line">
        {title}
        {done && <span class="badge good">done</span>}
      </h2>
      {waits !== undefined ? <p class="soft">First do step {waits}.</p> : children}
    </div>
  </li>
)

/** What an address shows that names no page. */
export const NotFound = () => (
  <Page title="Page not found">
    <Empty icon="search" title="There is nothing at this address">
      <p>The link may be old, or mistyped. Choose a page from the menu, or ask a question.</p>
      <Button label="Ask a question" kind="primary" href={NEW} />
    </Empty>
  </Page>
)

// =============================================================================
// What a page says while it loads, when it has nothing to show and when something failed.

interface EmptyProps {
  icon: IconName
  title: string
  children?: ComponentChildren
}

export const Empty = ({ icon, title, children }: EmptyProps) => (
  <div class="empty pile">
    <span class="empty-icon">
      <Icon name={icon} />
    </span>
    <h2>{title}</h2>
    {children}
  </div>
)

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

interface ActProps extends Omit<ButtonProps, 'onClick' | 'href'> {
  /** what it says while it runs */
  busy?: string
  run: () => Promise<unknown>
}

/** A button that does something, and beside it why that failed. */
export function Act({ label, busy: running = label, disabled = false, run, ...button }: ActProps) {
  const { busy, error, start } = useAction(run)
  return (
    <>
      <Button
        {...button}
        label={busy ? running : label}
        disabled={busy || disabled}
        onClick={() => start()}
      />
      {error && <Problem error={error} />}
    </>
  )
}

interface ShownProps<T> {
  of: Omit<Loaded<T>, 'set'>
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
export const Loading = ({ label = 'Loading' }: { label?: string }) => (
  <div class="loading pile" role="status">
    <span class="hidden">{label}</span>
    <span class="bone" aria-hidden="true" />
    <span class="bone" aria-hidden="true" />
    <span class="bone" aria-hidden="true" />
  </div>
)
