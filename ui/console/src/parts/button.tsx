/** Buttons, links that look like them, and icons. */
import type { ButtonHTMLAttributes } from 'preact'
import { useState } from 'preact/hooks'
import { ICONS } from '../../../widget/src/dom'

export interface ButtonProps extends Omit<ButtonHTMLAttributes, 'class' | 'icon' | 'label'> {
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
  /** what it does, and to what: a screen reader says both, the hint the first alone */
  label: string
  of?: string
  small?: boolean
}

/** A button with nothing but an icon. */
export const Tool = ({ icon, label, of = '', small = false, ...attributes }: ToolProps) => (
  <button
    type="button"
    class={small ? 'tool small' : 'tool'}
    aria-label={`${label} ${of}`.trim()}
    title={label}
    {...attributes}
  >
    <Icon name={icon} />
  </button>
)

/** How long it is shown that something was copied, in milliseconds. */
const SHOWN_MS = 1_600

/** A button that copies a text and shows that it has. */
export function Copy({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [[icon, said], setState] = useState<readonly [IconName, string?]>(['copy'])
  const copy = async () => {
    await navigator.clipboard.writeText(text).then(
      () => setState(['check', 'Copied']),
      () => setState(['warning', 'The browser did not let this page copy']),
    )
    setTimeout(() => setState(['copy']), SHOWN_MS)
  }
  return <Tool icon={icon} label={said ?? label} onClick={copy} />
}

/** A text to be taken away, which may be a secret that is not shown again. @param of what it is */
export const Secret = ({ text, of }: { text: string; of: string }) => (
  <div class="secret line">
    <code class="grow">{text}</code>
    <Copy text={text} label={`Copy the ${of}`} />
  </div>
)

// =============================================================================
// Icons: those of the widget, and the console's own.

const PATHS = {
  ...ICONS,
  collections:
    'M4.500 7c0-1.700 3.400-3 7.500-3s7.500 1.300 7.500 3-3.400 3-7.500 3-7.500-1.300-7.500-3zM4.500 7v10c0 1.700 3.400 3 7.500 3s7.500-1.300 7.500-3V7M4.500 12c0 1.700 3.400 3 7.500 3s7.500-1.300 7.500-3',
  conversations: 'M3.500 5h12v8.500H8L3.500 17zM18.500 9h2v11l-3.500-3h-7',
  assistants: 'M5 9h14v10H5zM12 9V5M9.500 13.500v1.500M14.500 13.500v1.500M10.500 4.500h3',
  tools: 'M19.500 7.500l-3 3-3-3 3-3a5 5 0 0 0-6.300 6.300L4 17v3h3l6.200-6.200a5 5 0 0 0 6.300-6.300z',
  models:
    'M7.500 7.500h9v9h-9zM10 4v3.500M14 4v3.500M10 16.500V20M14 16.500V20M4 10h3.500M4 14h3.500M16.500 10H20M16.500 14H20',
  keys: 'M14.500 13.500a4.500 4.500 0 1 0-4-2.500L4 17.500V20h3v-2h2v-2h2l1.500-1.600M15.500 8.500v.1',
  usage: 'M4 20h16M6.500 16.500v-5M11 16.500v-10M15.500 16.500v-7M19 16.500V9',
  sets: 'M9 6.500h11M9 12h11M9 17.500h11M4 6.500l1 1 1.800-2M4 12l1 1 1.800-2M4 17.500l1 1 1.800-2',
  compare: 'M4 5h6.500v14H4zM13.500 5H20v14h-6.500z',
  menu: 'M4 7h16M4 12h16M4 17h16',
  search: 'M10.500 4.500a6 6 0 1 0 0 12 6 6 0 0 0 0-12zM15 15l5 5',
  warning: 'M12 4.500l8.500 15h-17zM12 10v4.500M12 17v.2',
  download: 'M12 4v11M7.500 11l4.500 4.500 4.500-4.500M5 19.500h14',
  upload: 'M12 16V5M7.500 9L12 4.500 16.500 9M5 19.500h14',
  file: 'M6.500 3.500h7l4 4v13h-11zM13.500 3.500v4h4',
  settings:
    'M4 7.500h9M17 7.500h3M4 16.500h3M11 16.500h9M15 5.500a2 2 0 1 0 0 4 2 2 0 0 0 0-4zM9 14.500a2 2 0 1 0 0 4 2 2 0 0 0 0-4z',
  inspect: 'M4 18.500h16M4 13.500h5v5H4zM9.500 9h5v9.500h-5zM15 5h5v13.500h-5z',
  down: 'M6 9.500l6 6 6-6',
  right: 'M9.500 6l6 6-6 6',
  left: 'M14.500 6l-6 6 6 6',
  leave: 'M14 4.500h5v15h-5M4 12h10.500M11 8l4 4-4 4',
  theme: 'M12 4a8 8 0 1 0 0 16zM12 4a8 8 0 0 1 0 16M12 8l4-2M12 12l7-1M12 16l5-1',
  book: 'M5 4.500h11a3 3 0 0 1 3 3v12H8a3 3 0 0 1-3-3zM5 16.500a3 3 0 0 1 3-3h11',
} as const

export type IconName = keyof typeof PATHS

export const Icon = ({ name }: { name: IconName }) => (
  <svg class={`icon icon-${name}`} viewBox="0 0 24 24" aria-hidden="true">
    <path d={PATHS[name]} />
  </svg>
)
