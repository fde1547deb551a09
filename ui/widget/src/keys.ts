/** What the keyboard and the pointer do beside the buttons. */
import { LONGEST_QUESTION } from '../../../src/turn/question-length'
import type { Card } from './card'
import type { Frame } from './frame'
import type { Draft } from './storage'
import type { Words } from './words'

/** What the field of the composer needs besides itself. */
export interface Typing {
  words: Words
  draft: Draft
}

export interface KeyActions {
  send(): void
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
  typing: Typing,
  signal: AbortSignal,
): void {
  const { field, scroller, main, box } = frame
  const keep = () => fitField(frame, typing)
  field.value = typing.draft.text
  // In a box that is closed it has no height.
  if (field.value !== '' && field.clientHeight > 0) keep()
  field.addEventListener('input', keep)
  field.addEventListener('focus', () => {
    keep()
    actions.prepare()
  })
  field.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
    event.preventDefault()
    actions.send()
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

/** Whether the server takes a question of this length. */
export const isShortEnough = (text: string): boolean => text.length <= LONGEST_QUESTION

/**
 * Keeps what is in the field, makes the field as high as its text, and says if that is too long. A hint is in the widget's own
 * direction, a question in its own.
 */
export function fitField({ field, send, limit }: Frame, { words, draft }: Typing): void {
  draft.text = field.value
  limit.textContent = isShortEnough(field.value) ? '' : words.tooLong
  if (field.value === '') field.removeAttribute('dir')
  else field.dir = 'auto'
  field.style.setProperty('height', 'auto')
  field.style.setProperty('height', `${field.scrollHeight}px`)
  send.classList.toggle('ready', field.value.trim() !== '')
}
