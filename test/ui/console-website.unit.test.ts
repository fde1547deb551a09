/** What the console makes of a website's address, and of what the server tells of it. */
import { describe, expect, test } from 'vitest'
import { snippet } from '../../scripts/parley/commands/init.mjs'
import {
  addressOf,
  freeName,
  isFirst,
  looksOf,
  questionsOf,
  restsUntil,
  type Source,
  whyUnread,
} from '../../ui/console/src/start/site'

const URL_OF = 'https://docs.example.com/'
const RUN = { started_at: 1, pages: 1, changed: 0, unchanged: 0, gone: 0, failed: 0, failures: [] }
const source = (more: Partial<Source> = {}): Source => ({
  name: 'docs.example.com',
  kind: 'website',
  url: URL_OF,
  collection: 'docs-example',
  every_minutes: 1_440,
  prune: true,
  max_pages: 1_000,
  state: 'waiting',
  next_run_at: 0,
  ...more,
})

test.each([
  ['docs.example.com', 'https://docs.example.com/'],
  [' http://Example.com/a?b=c#d ', 'http://example.com/a?b=c'],
  ['localhost:8000/docs', 'http://localhost:8000/docs'],
  ['127.0.0.1', 'http://127.0.0.1/'],
  ['[::1]:80', 'http://[::1]/'],
])('the address %s means %s', (typed, url) => expect(addressOf(typed)).toBe(url))

test.each(['', 'my site', 'r2://docs/', 'ftp://example.com/', 'https://', 'javascript:alert(1)'])(
  '"%s" is no address of a website, and says what one looks like',
  (typed) => expect(() => addressOf(typed)).toThrow('One looks like https://docs.example.com/'),
)

test('a website gets a name that neither a collection nor an assistant has', () => {
  expect(freeName('example', new Set())).toBe('example')
  expect(freeName('docs-example', new Set(['docs-example', 'docs-example-2']))).toBe('docs-example-3')
  const long = 'a'.repeat(64)
  expect(freeName(long, new Set([long]))).toBe(`${'a'.repeat(62)}-2`)
})

describe('a source', () => {
  test('has its first pages read until there are 20, it has ended, or its site asks to be left alone', () => {
    expect(isFirst(source())).toBe(true)
    expect(isFirst(source({ state: 'reading', run: { ...RUN, pages: 19 } }))).toBe(true)
    expect(isFirst(source({ state: 'reading', run: { ...RUN, pages: 20 } }))).toBe(false)
    expect(isFirst(source({ last_run: RUN }))).toBe(false)
    const busy = source({ state: 'reading', next_run_at: 90_000, run: RUN })
    expect(restsUntil(busy, 60_000)).toBe(90_000)
    expect(restsUntil(busy, 90_000)).toBe(undefined)
    expect(isFirst({ ...busy, next_run_at: Date.now() + 60_000 })).toBe(false)
  })

  test('says why nothing could be read, and nothing where something was', () => {
    const failing = (url: string, error: string) =>
      whyUnread(source({ last_run: { ...RUN, failed: 1, failures: [{ url, error }] } }))
    expect(failing(URL_OF, 'robots.txt does not allow it')).toBe(
      `Nothing could be read of ${URL_OF}: robots.txt does not allow it.`,
    )
    expect(failing(`${URL_OF}a`, 'answered with 500')).toContain(`${URL_OF}a answered with 500.`)
    expect(whyUnread(source({ last_run: RUN }))).toContain('its pages hold no text')
    expect(whyUnread(source({ last_run: { ...RUN, unchanged: 1 } }))).toBe(undefined)
    expect(whyUnread(source())).toBe(undefined)
  })

  test('gives a chat its name and colour, and the host where a site says none', () => {
    expect(looksOf(source())).toEqual({ heading: 'docs.example.com', origin: 'https://docs.example.com' })
    expect(looksOf(source({ site: { color: '#FFF' } })).accent).toBe(undefined)
    const site = { name: 'A "site"', color: 'rgb(1 2 3)' }
    const { origin: _, ...looks } = looksOf(source({ site }))
    expect(snippet('https://chat.example.com', 'help', 'k', { ...looks, mode: 'bubble' })).toBe(
      `<script type="module" src="https://chat.example.com/widget/parley-chat.js"></script>
<parley-chat assistant="help" key="k" mode="bubble" heading="A &quot;site&quot;" style="--parley-accent: rgb(1 2 3)"></parley-chat>`,
    )
    expect(snippet('https://chat.example.com', 'help', 'k')).toContain(
      '<parley-chat assistant="help" key="k"></parley-chat>',
    )
  })
})

test('what can be asked first are titles, but that of the page on which a website begins', () => {
  const titles = ['Welcome', 'Install', 'Install', 'x'.repeat(61), 'Feed', 'Clean', 'Sell']
  expect(questionsOf(titles.map((title) => ({ title, url: URL_OF })))).toEqual(['Install', 'Feed', 'Clean'])
  expect(questionsOf([])).toEqual([])
})
