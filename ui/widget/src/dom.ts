/** Elements without HTML: pages whose policy forbids to set it can use the widget too. */

type Child = Node | string | false | undefined

/** @param attributes `onclick` and the like are listeners; `true` sets an empty attribute, `false` and undefined none */
export function h<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Record<string, unknown> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === undefined) continue
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value as EventListener)
    else element.setAttribute(key, value === true ? '' : String(value))
  }
  element.append(
    ...children.filter((child): child is Node | string => child !== false && child !== undefined),
  )
  return element
}

/** Outlines of 24 by 24: the console has these, and more. */
export const ICONS = {
  chat: 'M4 5.5h16v11H10l-4.5 3.5v-3.5H4z',
  spark: 'M12 3.5l1.9 5.6 5.6 1.9-5.6 1.9L12 18.5l-1.9-5.6L4.5 11l5.6-1.9zM19 16.5v4M17 18.5h4',
  close: 'M6 6l12 12M18 6L6 18',
  send: 'M12 19V5.5M6 11l6-6 6 6',
  stop: 'M7.5 7.5h9v9h-9z',
  copy: 'M9 9h10.5v10.5H9zM15 9V4.5H4.5V15H9',
  check: 'M5 12.5l4.5 4.5L19 7.5',
  again: 'M19.5 12a7.5 7.5 0 1 1-2.2-5.3M19.5 3.5v4h-4',
  edit: 'M5 19l1-4L16 5l3 3L9 18zM14 7l3 3',
  plus: 'M12 5v14M5 12h14',
  clip: 'M19 11.5l-7.300 7.300a4.500 4.500 0 0 1-6.400-6.400l8-8a3 3 0 0 1 4.300 4.300l-8 8a1.500 1.500 0 0 1-2.100-2.100l7-7',
  clock: 'M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM12 8v4.5l3 1.5',
  bin: 'M5 7h14M10 7V4.5h4V7M7 7l.8 12.5h8.4L17 7M10.5 10.5v6M13.5 10.5v6',
  back: 'M19 12H5.5M11 6l-6 6 6 6',
  older: 'M14 6l-6 6 6 6',
  newer: 'M10 6l6 6-6 6',
  open: 'M10 5.5H5v13.5h13.5v-5M14 4.5h5.5V10M19 5l-8.5 8.5',
  thumbUp:
    'M7.5 10.5v9h-3v-9zM7.5 11l4-7.5c2 0 2.5 1.5 2 3.5l-.5 2.500h5a2 2 0 0 1 2 2.300l-1 6a2 2 0 0 1-2 1.700H7.500',
  thumbDown:
    'M7.5 13.500v-9h-3v9zM7.500 13l4 7.500c2 0 2.500-1.500 2-3.500l-.5-2.500h5a2 2 0 0 0 2-2.300l-1-6a2 2 0 0 0-2-1.700H7.500',
  share: 'M12 14.500V4M8 7.500L12 3.500l4 4M7 11H5v9h14v-9h-2',
  next: 'M5 5v6.500a3 3 0 0 0 3 3h11M15 10.500l4 4-4 4',
  verify: 'M4.500 5h15M4.500 9.500h7M4.500 14h5M15 11.500a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM18 18.500l2.500 2.500',
  person: 'M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM4.500 20c.5-3.500 3.500-5 7.500-5s7 1.500 7.500 5',
  down: 'M12 5v13.500M6 13l6 6 6-6',
}

export type Icon = keyof typeof ICONS

export function icon(name: Icon): SVGSVGElement {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg')
  svg.setAttribute('viewBox', '0 0 24 24')
  svg.setAttribute('aria-hidden', 'true')
  svg.setAttribute('class', `icon icon-${name}`)
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path')
  path.setAttribute('d', ICONS[name])
  svg.append(path)
  return svg
}

/** A button that shows an icon and says what it does. */
export const iconButton = (
  name: Icon,
  label: string,
  onclick: (event: MouseEvent) => void,
  attributes: Record<string, unknown> = {},
): HTMLButtonElement =>
  h(
    'button',
    { type: 'button', class: 'tool', 'aria-label': label, title: label, onclick, ...attributes },
    icon(name),
  )
