/** Buttons, and links that look like them. */
import type { ButtonHTMLAttributes } from 'preact'
import { useState } from 'preact/hooks'
import { Icon, type IconName } from './icon'

interface ButtonProps extends Omit<ButtonHTMLAttributes, 'class' | 'icon' | 'label'> {
  label: string
  kind?: 'primary' | 'danger' | 'quiet' | ''
  icon?: IconName
  /** the icon behind its label */
  after?: IconName
  /** where it leads; absent: it is no link */
  href?: string
}

export function Button({ label, kind = '', icon, after, href, ...attributes }: ButtonProps) {
  const look = `button ${kind}`.trim()
  const content = (
    <>
      {icon && <Icon name={icon} />}
      {label}
      {after && <Icon name={after} />}
    </>
  )
  if (href !== undefined) {
    return (
      <a class={look} href={href}>
        {content}
      </a>
    )
  }
  return (
    <button type="button" class={look} {...attributes}>
      {content}
    </button>
  )
}

interface ToolProps extends Omit<ButtonHTMLAttributes, 'class' | 'icon' | 'label' | 'title'> {
  icon: IconName
  /** what a screen reader says of it */
  label: string
  /** the hint, where that is shorter */
  title?: string
  small?: boolean
}

/** A button with nothing but an icon. */
export const Tool = ({ icon, label, title = label, small = false, ...attributes }: ToolProps) => (
  <button
    type="button"
    class={small ? 'tool small' : 'tool'}
    aria-label={label}
    title={title}
    {...attributes}
  >
    <Icon name={icon} />
  </button>
)

const SHOWN_MS = 1_600

/** A button that copies a text and shows that it has. */
export function Copy({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [state, setState] = useState<'ready' | 'copied' | 'failed'>('ready')
  const copy = async () => {
    const done = await navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    )
    setState(done ? 'copied' : 'failed')
    setTimeout(() => setState('ready'), SHOWN_MS)
  }
  const said = { ready: label, copied: 'Copied', failed: 'The browser did not let this page copy' }[state]
  return (
    <Tool
      icon={state === 'copied' ? 'check' : state === 'failed' ? 'warning' : 'copy'}
      label={said}
      onClick={copy}
    />
  )
}
