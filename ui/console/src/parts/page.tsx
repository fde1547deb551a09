/** The frame of a page: its title, where it belongs, and what can be done on it. */
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { Icon } from './icon'

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
      <header class="page-head">
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
        {actions && <div class="page-actions">{actions}</div>}
      </header>
      {children}
    </div>
  )
}

/** The title of the browser's tab. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title === '' ? 'Parley' : `${title} · Parley`
  }, [title])
}
