/** The frame of the widget: launcher, head, conversation, composer, history. */
import type { Attachments } from './attachments'
import { Composer } from './composer'
import { h, icon, iconButton } from './dom'
import type { Handover } from './handover'
import type { Draft } from './storage'
import type { Words } from './words'

export type Mode = 'inline' | 'bubble' | 'panel' | 'dialog' | 'page'
export const MODES: readonly string[] = ['inline', 'bubble', 'panel', 'dialog', 'page']

export interface FrameActions {
  toggle(): void
  hide(): void
  newChat(): void
  share(): void
  history(): void
  ask(question: string): void
  stop(): void
}

export interface Frame {
  root: HTMLElement
  launcher: HTMLButtonElement | undefined
  /** the box of the chat: a dialog where it opens and closes */
  box: HTMLElement
  main: HTMLElement
  scroller: HTMLElement
  welcome: HTMLElement
  turns: HTMLElement
  latest: HTMLButtonElement
  composer: Composer
  field: HTMLTextAreaElement
  newChat: HTMLButtonElement
  share: HTMLButtonElement
  historyButton: HTMLButtonElement
  history: HTMLElement
  /** what is said to whoever listens */
  live: HTMLElement
}

export interface FrameOptions {
  mode: Mode
  /** whether the history stands beside the conversation; otherwise a button opens it over the conversation */
  sidebar: boolean
  words: Words
  draft: Draft
  attachments: Attachments
  handover: Handover
  title: string
  /** of the words; absent: the page's */
  direction: string | undefined
  placeholder: string
  note: boolean
  launcher: boolean
  /** as it is shown on the launcher of the dialog */
  hotkey: string
}

export function buildFrame(
  {
    mode,
    sidebar,
    words,
    draft,
    attachments,
    handover,
    title,
    direction,
    placeholder,
    note,
    launcher,
    hotkey,
  }: FrameOptions,
  actions: FrameActions,
): Frame {
  const opens = mode === 'bubble' || mode === 'panel' || mode === 'dialog'
  const composer = new Composer({
    words,
    draft,
    label: words.placeholder,
    placeholder: placeholder || words.placeholder,
    above: attachments.element,
    before: attachments.button,
    note: note && h('p', { class: 'note' }, words.note),
    ask: actions.ask,
    stop: actions.stop,
  })
  const newChat = iconButton('plus', words.newChat, actions.newChat, { hidden: true })
  const share = iconButton('share', words.share, actions.share, { hidden: true })
  const historyButton = iconButton('clock', words.history, actions.history, { 'aria-expanded': 'false' })
  const welcome = h('div', { class: 'welcome', part: 'welcome' })
  const turns = h('div', { class: 'turns' })
  const scroller = h(
    'div',
    { class: 'scroller-y', tabindex: 0, role: 'group', 'aria-label': title },
    welcome,
    turns,
    handover.element,
  )
  const latest = iconButton('down', words.latest, () => scroller.scrollTo({ top: scroller.scrollHeight }), {
    class: 'latest',
    hidden: true,
  })
  const history = h('aside', {
    class: 'history',
    part: 'history',
    'aria-label': words.history,
    hidden: !sidebar,
  })
  const live = h('div', { class: 'hidden', role: 'log', 'aria-live': 'polite', 'aria-relevant': 'additions' })
  const head = h(
    'header',
    { class: 'head', part: 'header' },
    h('h2', { class: 'title', part: 'title', id: 'title', dir: 'auto' }, title),
    handover.button,
    share,
    newChat,
    !sidebar && historyButton,
    opens && iconButton('close', words.close, actions.hide),
  )
  const main = h(
    'div',
    { class: 'main' },
    head,
    h('div', { class: 'middle' }, scroller, latest, !sidebar && history),
    composer.element,
  )
  const inside = [sidebar && history, main, live]
  const box = opens
    ? h('dialog', { class: 'box', part: 'box', 'aria-labelledby': 'title' }, ...inside)
    : h('section', { class: 'box', part: 'box', 'aria-labelledby': 'title' }, ...inside)
  const opener = opens && launcher ? buildLauncher(mode, words, title, hotkey, actions.toggle) : undefined
  const root = h('div', { class: `root ${mode}`, dir: direction }, opener, box)
  return {
    root,
    launcher: opener,
    box,
    main,
    scroller,
    welcome,
    turns,
    latest,
    composer,
    field: composer.field,
    newChat,
    share,
    historyButton,
    history,
    live,
  }
}

function buildLauncher(
  mode: Mode,
  words: Words,
  title: string,
  hotkey: string,
  onclick: () => void,
): HTMLButtonElement {
  const attributes = {
    type: 'button',
    class: 'launcher',
    part: 'launcher',
    'aria-haspopup': 'dialog',
    onclick,
  }
  if (mode !== 'dialog') {
    return h(
      'button',
      { ...attributes, 'aria-label': words.open, 'aria-expanded': 'false' },
      icon('chat'),
      icon('close'),
    )
  }
  return h(
    'button',
    { ...attributes, 'aria-expanded': 'false' },
    icon('spark'),
    h('span', { class: 'launcher-text' }, title),
    hotkey !== '' && h('kbd', {}, hotkey),
  )
}
