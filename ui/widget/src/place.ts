/** Where the widget stands: beside others of the page, and above a keyboard. */
import type { AttributeElement } from './attributes'

const standing = new Set<{ element: AttributeElement; root: HTMLElement }>()

/**
 * Has launchers of one corner stand side by side, and one chat over the page open at a time.
 * @param signal ends it
 */
export function standBeside(element: AttributeElement, root: HTMLElement, signal: AbortSignal): void {
  const own = { element, root }
  standing.add(own)
  const number = () => {
    const corners: Record<string, number> = {}
    for (const each of standing) {
      const corner = each.element.getAttribute('position') ?? 'end'
      each.root.style.setProperty('--nth', String(corners[corner] ?? 0))
      corners[corner] = (corners[corner] ?? 0) + 1
    }
  }
  number()
  element.addEventListener(
    'parley-open',
    () => {
      for (const each of standing) if (each !== own && each.element.open) each.element.hide()
    },
    { signal },
  )
  signal.addEventListener('abort', () => {
    standing.delete(own)
    number()
  })
}

/** pixels that no bar of a browser has, so that it must be a keyboard */
const KEYBOARD = 120

/** Tells the style sheet what a keyboard on the screen leaves of the page. @param signal ends it */
export function standAbove(root: HTMLElement, signal: AbortSignal): void {
  const seen = window.visualViewport
  if (!seen) return
  const fit = () => {
    // A page that is magnified is seen in part, too.
    const covered = seen.scale === 1 && innerHeight - seen.height > KEYBOARD
    for (const [name, value] of [
      ['--seen', seen.height],
      ['--seen-top', seen.offsetTop],
    ] as const) {
      if (covered) root.style.setProperty(name, `${value}px`)
      else root.style.removeProperty(name)
    }
  }
  seen.addEventListener('resize', fit, { signal })
  seen.addEventListener('scroll', fit, { signal })
}
