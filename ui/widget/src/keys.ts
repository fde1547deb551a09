/** What the keyboard and the pointer do beside the buttons. */
import type { Card } from './card'
import type { Frame } from './frame'

export interface KeyActions {
  prepare(): void
  toggle(): void
  /** Closes what is open: the history first, then the chat. */
  back(): void
  hide(): void
}

/**
 * @param hotkey opens and closes the chat with Ctrl or Cmd; '' for none
 * @param signal of its end: the hotkey is the whole page's
 */
export function listen(
  frame: Frame,
  card: Card,
  hotkey: string,
  actions: KeyActions,
  signal: AbortSignal,
): void {
  const { composer, field, scroller, main, box } = frame
  // In a box that is closed it has no height.
  if (field.value !== '' && field.clientHeight > 0) composer.fit()
  field.addEventListener('focus', () => {
    composer.fit()
    actions.prepare()
  })
  scroller.addEventListener('scroll', () => card.scrolled(), { passive: true })
  main.addEventListener('pointerdown', ({ target }) => {
    if (!card.element.contains(target as Node)) card.close(false)
  })
  if (box instanceof HTMLDialogElement) {
    box.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape' || event.defaultPrevented) return
      event.preventDefault()
      actions.back()
    })
    box.addEventListener('cancel', (event) => event.preventDefault())
    // Of a modal dialog, what is behind it is the dialog itself.
    box.addEventListener('click', ({ target }) => {
      if (target === box && box.matches(':modal')) actions.hide()
    })
  }
  if (hotkey === '') return
  const opens = (event: KeyboardEvent): boolean =>
    event.key.toLowerCase() === hotkey && (event.metaKey || event.ctrlKey) && !event.altKey && !event.shiftKey
  addEventListener(
    'keydown',
    (event) => {
      if (!opens(event)) return
      event.preventDefault()
      actions.toggle()
    },
    { signal },
  )
}
