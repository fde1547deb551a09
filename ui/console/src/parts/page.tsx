/** The frame of a page: its title, where it belongs, its views, and what can be done on it. */
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { NEW } from '../address'
import { Button } from './button'
import { Icon } from './icon'
import { Empty } from './states'

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
