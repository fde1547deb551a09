/** The visitor's own conversations: to open one, and to delete it after a second click. */
import type { Api } from './api'
import { h, icon, iconButton } from './dom'
import type { ConversationSummary } from './wire'
import type { Words } from './words'

export interface HistoryHost {
  words: Words
  language: string
  api: Api
  current(): string | undefined
  open(id: string): void
  removed(id: string): void
  newChat(): void
}

/** Fills an element with the list, and says what came of it. */
export async function showHistory(element: HTMLElement, host: HistoryHost): Promise<void> {
  const { words, api } = host
  const list = h('ul', { class: 'history-list' })
  const note = h('p', { class: 'history-note', role: 'status' })
  const fresh = h(
    'button',
    { type: 'button', class: 'history-new', onclick: host.newChat },
    icon('plus'),
    words.newChat,
  )
  try {
    const conversations = await api.list()
    const items = conversations.map((each) => itemOf(each, host))
    list.append(...items)
    if (items.length === 0) note.textContent = words.noHistory
  } catch {
    note.textContent = words.failed
  }
  element.replaceChildren(h('h2', { class: 'history-title' }, words.history), fresh, list, note)
}

function itemOf({ id, title, updated_at: at }: ConversationSummary, host: HistoryHost): HTMLElement {
  const { words, language } = host
  const isCurrent = id === host.current()
  const when = new Intl.DateTimeFormat(language || undefined, { dateStyle: 'medium' }).format(at)
  const open = h(
    'button',
    {
      type: 'button',
      class: 'history-open',
      ...(isCurrent && { 'aria-current': 'true' }),
      onclick: () => host.open(id),
    },
    h('span', { class: 'history-name', dir: 'auto' }, title),
    h('span', { class: 'history-when' }, when),
  )
  let sure = false
  const remove = iconButton('bin', words.remove, async () => {
    if (!sure) {
      sure = true
      remove.classList.add('sure')
      remove.replaceChildren(words.removeSure)
      remove.setAttribute('aria-label', `${words.removeSure} ${title}`)
      return
    }
    remove.disabled = true
    await host.api.remove(id).then(
      () => {
        const next =
          item.nextElementSibling ?? item.previousElementSibling ?? item.parentElement?.parentElement
        item.remove()
        next?.querySelector<HTMLElement>('button')?.focus()
        host.removed(id)
      },
      () => {
        remove.disabled = false
      },
    )
  })
  remove.setAttribute('aria-label', `${words.remove}: ${title}`)
  remove.addEventListener('blur', () => {
    if (!sure || remove.disabled) return
    sure = false
    remove.classList.remove('sure')
    remove.replaceChildren(icon('bin'))
    remove.setAttribute('aria-label', `${words.remove}: ${title}`)
  })
  const item = h('li', { class: 'history-item' }, open, remove)
  return item
}
