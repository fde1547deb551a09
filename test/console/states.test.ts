/** What the console shows where there is nothing to show: nothing yet, nothing at this address, and a server that fails. */
import { expect, test } from 'vitest'
import { emptyServer, sampleServer } from './sample'
import { failure } from './server'
import { address, go, openTab, pressEscape, screen, waitFor, within } from './tab'

/** What pages say while there is nothing to list, and what they offer. */
const EMPTY: [address: string, title: string, action: string | undefined][] = [
  ['/', 'Welcome to Parley', 'Get started'],
  ['/collections', 'No collections yet', 'Import files'],
  ['/conversations', 'No conversations yet', 'Ask a question'],
  ['/conversations/unanswered', 'Nothing is left unanswered', 'Ask a question'],
  ['/sources', 'No sources yet', 'New source'],
  ['/sets', 'No question sets yet', 'New set'],
  ['/assistants', 'No assistants yet', 'New assistant'],
  ['/tools', 'No tools yet', 'New tool'],
  ['/models', 'No models yet', 'New model'],
  ['/keys', 'No keys yet', 'New key'],
  ['/webhooks', 'No webhooks yet', 'New webhook'],
  ['/usage', 'Nothing was asked in this time', 'Ask a question'],
  ['/compare', 'No answer is chosen', 'Ask a question'],
]

const LISTS = [
  'collections',
  'sources',
  'sets',
  'conversations',
  'conversations/unanswered',
  'assistants',
  'tools',
  'models',
  'keys',
  'webhooks',
  'usage',
  'start',
]

const UNKNOWN = ['nowhere', 'models/nowhere', 'usage/2020', 'assistants/a/b', 'conversations/read/a/b']

test.each(EMPTY)(
  'the page at %s says that there is nothing yet, and what to do',
  async (at, title, action) => {
    await openTab(emptyServer(), at)
    const heading = await screen.findByRole('heading', { name: title })
    if (action) within(heading.closest<HTMLElement>('.empty')!).getByRole('link', { name: action })
  },
)

test.each(LISTS)(
  'the page %s says what to do when the server fails, and shows itself once it works',
  async (at) => {
    const server = sampleServer()
    server.instead = () => failure(500, 'It broke')
    await openTab(server, `/${at}`)
    await waitFor(() =>
      expect(screen.getByRole('alert').textContent).toContain('It broke. Try again in a moment.'),
    )
    server.instead = () => undefined
    screen.getByRole('button', { name: 'Try again' }).click()
    await waitFor(() => expect(screen.queryByRole('alert')).toBe(null))
    expect(screen.getByRole('heading', { level: 1 }).textContent).not.toBe('Loading')
  },
)

test.each(LISTS)('the page %s shows grey lines while its data is on its way', async (at) => {
  const gate = Promise.withResolvers<void>()
  const server = emptyServer()
  server.gate = gate.promise
  await openTab(server, `/${at}`)
  const lines = () =>
    screen.queryAllByRole('status').filter(({ textContent }) => /Loading|Reading/.test(textContent ?? ''))
  await waitFor(() => expect(lines().length).toBeGreaterThan(0))
  gate.resolve()
  await waitFor(() => expect(document.querySelector('.loading')).toBe(null))
})

test.each(UNKNOWN)('there is a page, and no JSON, at %s, which names none', async (at) => {
  await openTab(sampleServer())
  go(`/${at}`)
  await screen.findByRole('heading', { name: 'There is nothing at this address' })
  go('/keys')
  await screen.findByRole('heading', { name: 'Keys', level: 1 })
})

test.each([
  ['models', 'New model'],
  ['keys', 'New key'],
])('what the page %s makes has an address', async (at, title) => {
  await openTab(sampleServer(), `/${at}?new=1`)
  await screen.findByRole('dialog', { name: title })
  pressEscape()
  await waitFor(() => expect(screen.queryByRole('dialog')).toBe(null))
  expect(address()).toBe(`/${at}`)
})
