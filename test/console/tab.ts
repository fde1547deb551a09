/**
 * A tab with the console in it: the pages as they are, in a DOM without layout (happy-dom), with a fake server behind them. Each
 * tab loads the console anew, since addresses, keys and settings are state of its modules.
 */
import { configure, fireEvent, screen, waitFor, within } from '@testing-library/dom'
import axe from 'axe-core'
import { h, render } from 'preact'
import { afterEach, beforeEach, expect, vi } from 'vitest'
import { FakeServer } from './server'

// A page may be drawn late on a busy machine: a second, which the library gives, says nothing. No style sheet hides anything here.
configure({ asyncUtilTimeout: 5_000, defaultHidden: true })

/** What the window of happy-dom has besides a browser's. */
interface Window {
  happyDOM: { setViewport(size: { width: number; height: number }): void }
}

const PHONE = { width: 390, height: 844 }
const DESKTOP = { width: 1360, height: 860 }

let listening: [string, EventListenerOrEventListenerObject][] = []
let server = new FakeServer()
/** all servers that a test has had */
let servers: FakeServer[] = []
const faults: string[] = []

/** What the tab would have written to the console of its browser. */
function watchConsole(): void {
  for (const level of ['error', 'warn'] as const) {
    vi.spyOn(console, level).mockImplementation((...told) => void faults.push(told.map(String).join(' ')))
  }
}

/** Modules of a tab that is closed must not hear of the addresses of the next one. */
function noteListeners(): void {
  const add = window.addEventListener.bind(window)
  vi.spyOn(window, 'addEventListener').mockImplementation(
    (type: string, listener: EventListenerOrEventListenerObject, options?: unknown) => {
      listening.push([type, listener])
      add(type, listener, options as AddEventListenerOptions)
    },
  )
}

beforeEach(() => {
  watchConsole()
  noteListeners()
})

/** Takes the console off the page, as a tab that is closed or loaded anew. */
async function close(): Promise<void> {
  const root = document.getElementById('console')
  if (root) render(null, root)
  for (const [type, listener] of listening) window.removeEventListener(type, listener)
  listening = []
  document.body.replaceChildren()
  // Preact ends what has just been drawn a frame later.
  await settled()
}

afterEach(async () => {
  await close()
  sessionStorage.clear()
  localStorage.clear()
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
  const all = [...faults.splice(0), ...servers.flatMap((each) => each.faults)]
  servers = []
  expect(all).toEqual([])
})

interface TabOptions {
  phone?: boolean
  /** before the `#`, such as `?collection=shop` */
  query?: string
}

/** Opens the console. @param address what stands behind its `#`: `/collections`, or the id of a conversation */
export async function openTab(
  of: FakeServer,
  address = '',
  { phone = false, query = '' }: TabOptions = {},
): Promise<void> {
  await close()
  server = of
  servers.push(of)
  const { happyDOM } = window as unknown as Window
  happyDOM.setViewport(phone ? PHONE : DESKTOP)
  history.pushState(null, '', `/${query}${address === '' ? '' : `#${address}`}`)
  await load()
}

/** Loads the tab anew: what the address and the storage of the tab do not keep is forgotten. */
export async function reload(): Promise<void> {
  await close()
  await load()
}

async function load(): Promise<void> {
  vi.stubGlobal('fetch', server.fetch)
  const root = document.createElement('div')
  root.id = 'console'
  document.body.replaceChildren(root)
  // A browser's own style sheet says so, and axe looks at no more than what is shown.
  document.head.innerHTML = '<style>[hidden], dialog:not([open]) { display: none }</style>'
  vi.resetModules()
  const { App } = await import('../../ui/console/src/app')
  render(h(App, {}), root)
}

/** Waits until a part of the page says something. @param part a selector; without one, all of the page */
export const shows = (text: string | RegExp, part = 'body'): Promise<void> =>
  waitFor(() => {
    const said = [...document.querySelectorAll(part)].map(({ textContent }) => textContent).join('\n')
    if (text instanceof RegExp) expect(said).toMatch(text)
    else expect(said).toContain(text)
  })

/** What the parts of a page say, by a selector. */
export const texts = (selector: string): string[] =>
  [...document.querySelectorAll(selector)].map(({ textContent }) => textContent ?? '')

/** Whether axe finds no fault in what is shown. Colours and sizes want a browser: test/browser/console-pages.test.ts has them. */
export async function expectSound(state: string): Promise<void> {
  const { violations } = await axe.run(document.body, {
    preload: false,
    resultTypes: ['violations'],
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
    rules: { 'color-contrast': { enabled: false } },
  })
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html} ${nodes[0]?.failureSummary}`)
  expect([state, found]).toEqual([state, []])
}

/** Follows a link to an address of the same tab. */
export const go = (address: string): void => {
  location.hash = address
}

/** The address behind the `#`, decoded. */
export const address = (): string => decodeURIComponent(location.hash.slice(1)).replaceAll('+', ' ')

/** Waits until what was drawn has had its effects, as whoever looks at a page before acting does. */
export async function settled(): Promise<void> {
  for (let frames = 0; frames < 2; frames++) await new Promise((resolve) => requestAnimationFrame(resolve))
  await new Promise((resolve) => setTimeout(resolve))
}

/** Clicks on something, once it can be clicked on. */
export async function click(element: Element): Promise<void> {
  await settled()
  await waitFor(() => expect(element.matches(':disabled')).toBe(false))
  fireEvent.click(element)
}

/** Types a text into a field, in the place of what was there. */
export async function type(field: HTMLElement, text: string): Promise<void> {
  await settled()
  field.focus()
  fireEvent.input(field, { target: { value: text } })
}

/** Types a text and presses Enter, which a form or the field takes. */
export async function enter(field: HTMLElement, text: string): Promise<void> {
  await type(field, text)
  if (fireEvent.keyDown(field, { key: 'Enter' })) fireEvent.change(field)
}

/** Chooses an option of a list by what it says. */
export async function choose(field: HTMLElement, option: string): Promise<void> {
  const found = await within(field).findByRole<HTMLOptionElement>('option', { name: option })
  await settled()
  fireEvent.change(field, { target: { value: found.value } })
}

/** The text of the file that something hands to the browser. */
export async function downloaded(start: () => void): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<Blob>()
  const keep = vi.spyOn(URL, 'createObjectURL').mockImplementation((file) => {
    resolve(file as Blob)
    return 'blob:file'
  })
  // A DOM without a browser around it would go there.
  const follow = vi.spyOn(HTMLAnchorElement.prototype, 'click').mockImplementation(() => {})
  start()
  const file = await promise
  keep.mockRestore()
  follow.mockRestore()
  return file.text()
}

/** Escape closes the dialog that is open: the browser's own doing. */
export const pressEscape = (): void => document.querySelector<HTMLDialogElement>('dialog[open]')?.close()

export { screen, waitFor, within }
