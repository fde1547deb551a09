/** Buttons, and links that look like them. */
import type { ButtonHTMLAttributes } from 'preact'
import { useState } from 'preact/hooks'
import { Icon, type IconName } from './icon'

interface ButtonProps extends Omit<ButtonHTMLAttributes, 'class' | 'icon' | 'label'> {
  label: string
  kind?: 'primary' | 'danger' | 'quiet' | 'pill' | ''
  icon?: IconName
  /** the icon behind its label */
  after?: IconName
  /** where it leads; absent: it is no link */
  href?: string
}

export function Button({ label, kind = '', icon, after, href, ...attributes }: ButtonProps) {
  const look = kind === 'pill' ? 'inspect aside' : `button ${kind}`.trim()
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

/** How long it is shown that something was copied, in milliseconds. */
export const SHOWN_MS = 1_600

/** Copies a text. @returns whether the browser let this page do it */
export const copied = (text: string): Promise<boolean> =>
  navigator.clipboard.writeText(text).then(
    () => true,
    () => false,
  )

/** A button that copies a text and shows that it has. */
export function Copy({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [[icon, said], setState] = useState<readonly [IconName, string?]>(['copy'])
  const copy = async () => {
    setState(
      (await copied(text)) ? ['check', 'Copied'] : ['warning', 'The browser did not let this page copy'],
    )
    setTimeout(() => setState(['copy']), SHOWN_MS)
  }
  return <Tool icon={icon} label={said ?? label} onClick={copy} />
}
