/** What the console shows where there is nothing to show: nothing yet, nothing at this address, and a server that fails. */
import type { Page } from 'playwright-core'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { loadSample } from '../../scripts/sample.mjs'
import { KEY, url } from '../clients/harness'
import { CHROMIUM } from './chromium'
import { ConsoleStage, expectSound, LOOKS } from './console-stage'

/** What each list of the server says when it is empty. */
const NOTHING: Record<string, unknown> = {
  '/collections': [],
  '/conversations/models': [],
  '/assistants': { assistants: [] },
  '/keys': { keys: [] },
  '/sources': { sources: [] },
  '/conversations': { conversations: [] },
  '/usage': { usage: [] },
}

/** What pages say while there is nothing to list, and what they offer. */
const EMPTY: [address: string, title: string, action: string | undefined][] = [
  ['', 'Welcome to Parley', 'Get started'],
  ['collections', 'No collections yet', 'Import files'],
  ['conversations', 'No conversations yet', 'Ask a question'],
  ['conversations/unanswered', 'Nothing is left unanswered', 'Ask a question'],
  ['sources', 'No sources yet', 'New source'],
  ['sets', 'No question sets yet', 'New set'],
  ['assistants', 'No assistants yet', 'New assistant'],
  ['models', 'No models yet', 'New model'],
  ['keys', 'No keys yet', 'New key'],
  ['usage', 'Nothing was asked in this time', 'Ask a question'],
  ['compare', 'No answer is chosen', 'Ask a question'],
]

const LISTS = [
  'collections',
  'sources',
  'conversations',
  'conversations/unanswered',
  'assistants',
  'models',
  'keys',
  'usage',
  'start',
]
/** Where axe looks: all lists fail and load by one component each. */
const ONE = 'conversations'
const UNKNOWN = ['nowhere', 'models/nowhere', 'usage/2020', 'assistants/a/b', 'conversations/read/a/b']

describe.runIf(CHROMIUM)('a page of the console', () => {
  let stage: ConsoleStage

  beforeAll(async () => {
    await loadSample(url, KEY)
    stage = await ConsoleStage.set()
  })
  beforeEach(() => async () => expect(await stage.reset()).toEqual([]))

  const go = async (page: Page, address: string) => page.evaluate(`location.hash = '#/${address}'`)

  for (const { size, colorScheme, options } of LOOKS) {
    test(`says what to do where there is nothing yet, on a ${size}, ${colorScheme}`, async () => {
      const page = await stage.tab(options, '#/nowhere')
      await page.route(
        ({ pathname }) => pathname in NOTHING,
        (route) => route.fulfill({ json: NOTHING[new URL(route.request().url()).pathname] }),
      )
      await page.reload()
      for (const [address, title, action] of EMPTY) {
        await go(page, address)
        const empty = page.locator('.empty', { has: page.getByRole('heading', { name: title }) })
        await empty.waitFor()
        if (action) expect(await empty.getByRole('link', { name: action }).count()).toBe(1)
        await expectSound(page, title)
      }
    })
  }

  test('says what to do when the server fails, and shows itself once it works', async () => {
    const page = await stage.tab({}, '#/nowhere')
    const isApi = ({ pathname }: URL) => pathname in NOTHING
    for (const address of LISTS) {
      await page.route(isApi, (route) => route.fulfill({ status: 500, json: { message: 'It broke' } }))
      await go(page, address)
      await page.getByRole('alert').getByText('It broke. Try again in a moment.').waitFor()
      if (address === ONE) await expectSound(page, `${address} fails`)
      await page.unroute(isApi)
      await page.getByRole('button', { name: 'Try again' }).click()
      await page.getByRole('alert').waitFor({ state: 'detached' })
    }
    // A browser reports each failed request to its console.
    expect((await stage.reset()).filter((fault) => !fault.includes('500'))).toEqual([])
  })

  test('shows grey lines while its data is on its way', async () => {
    const page = await stage.tab({}, '#/nowhere')
    const isApi = ({ pathname }: URL) => pathname in NOTHING
    const gate = Promise.withResolvers<void>()
    await page.route(isApi, async (route) => {
      await gate.promise
      await route.continue()
    })
    await page.reload()
    for (const address of LISTS) {
      await go(page, address)
      await page
        .getByRole('status')
        .filter({ hasText: /Loading|Reading/ })
        .first()
        .waitFor({ state: 'attached' })
      if (address === ONE) await expectSound(page, `${address} loads`)
    }
    gate.resolve()
    await page.locator('.loading').waitFor({ state: 'detached' })
    await page.unrouteAll({ behavior: 'wait' })
  })

  test('is one, and no JSON, at an address that names none', async () => {
    const page = await stage.tab()
    for (const address of UNKNOWN) {
      await go(page, address)
      await page.getByRole('heading', { name: 'There is nothing at this address' }).waitFor()
      await go(page, 'keys')
      await page.getByRole('heading', { name: 'Keys', level: 1 }).waitFor()
    }
    const response = await page.goto(`${url}/no/such/page`)
    expect(response?.headers()['content-type']).toContain('text/html')
    await page.getByRole('heading', { name: 'Page not found' }).waitFor()
    expect((await stage.reset()).filter((fault) => !/40[14]/.test(fault))).toEqual([])
  })

  test('has an address for what it makes', async () => {
    const page = await stage.tab()
    for (const [address, title] of [
      ['models', 'New model'],
      ['keys', 'New key'],
      ['sets', 'New question set'],
    ]) {
      await go(page, `${address}?new=1`)
      const dialog = page.getByRole('dialog', { name: title! })
      await dialog.waitFor()
      await page.keyboard.press('Escape')
      await dialog.waitFor({ state: 'detached' })
      await expect.poll(() => new URL(page.url()).hash).toBe(`#/${address}`)
    }
  })
})
