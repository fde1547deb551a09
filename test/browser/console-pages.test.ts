/**
 * Each page of the console opened once on a desktop and on a phone: axe finds nothing in it, colours included, nothing sticks out,
 * and its browser has nothing to say. What it shows comes from the fake server of the tests of components (test/console).
 */
import type { Page } from 'playwright-core'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { fullServer } from '../console/full'
import { emptyServer } from '../console/sample'
import { failure } from '../console/server'
import { CHROMIUM } from './chromium'
import { ConsoleStage, expectSound, LOOKS, serveBy } from './console-stage'

/** What is done on a page before it is looked at. */
type Act = (page: Page) => Promise<unknown>

const open =
  (summary: string): Act =>
  (page) =>
    page.locator('summary', { hasText: summary }).first().click()

/** Two answers stand side by side where there is room, and otherwise one below the other. */
const compareSides: Act = async (page) => {
  const sides = page.locator('.answer-side')
  await sides.locator('.waterfall').nth(1).waitFor()
  const [left, right] = [(await sides.nth(0).boundingBox())!, (await sides.nth(1).boundingBox())!]
  if ((page.viewportSize()?.width ?? 0) < 500) expect(right.y).toBeGreaterThan(left.y + left.height - 1)
  else expect([right.y, right.x > left.x]).toEqual([left.y, true])
}

const chooseFile: Act = async (page) => {
  const buffer = Buffer.from('# A\n\nText.')
  await page.getByLabel('Files').setInputFiles({ name: 'a.md', mimeType: 'text/markdown', buffer })
  await page.getByText('The collection is made with').waitFor()
}

const importFile: Act = async (page) => {
  await chooseFile(page)
  await page.getByRole('button', { name: 'Import', exact: true }).click()
  await page.getByText('Refused by the server').waitFor()
}

const connect: Act = async (page) => {
  for (const label of ['Name in Parley', 'Nodes', 'API key']) await page.getByLabel(label).fill('linked')
  await page.getByRole('button', { name: 'Connect', exact: true }).click()
  await page.getByRole('alert').waitFor()
}

const makeKey: Act = async (page) => {
  await page.getByRole('button', { name: 'Create key' }).click()
  await page.locator('.secret').nth(1).waitFor()
}

const testModel: Act = async (page) => {
  await page.getByRole('button', { name: 'Test' }).first().click()
  await page.locator('.test-state .bad').waitFor()
}

const chooseDocument: Act = async (page) => {
  await page.getByRole('button', { name: 'This should have answered' }).click()
  await page.getByRole('button', { name: 'Chosen' }).waitFor()
}

/** Addresses, and what they show when they are there. */
const PAGES: [address: string, shown: string, act?: Act][] = [
  ['', '.suggestion'],
  ['/', '.dialog', (page) => page.getByRole('button', { name: 'Settings' }).click()],
  ['/collections', '.item'],
  ['/collections?connect=1', '#engine-type'],
  ['/collections?connect=1', '#engine-type', connect],
  ['/collections/docs?q=history&weights=text:9', '.result mark', open('About these scores')],
  ['/collections/docs/documents', '.row'],
  ['/collections/docs/schema', '.table'],
  ['/collections/linked', '.nodes .bad'],
  ['/collections/refused/documents', '[role=alert]', (page) => page.locator('.row').first().click()],
  ['/import', '.drop'],
  ['/import', '.drop', chooseFile],
  ['/import', '.drop', importFile],
  ['/rules', '.item'],
  ['/models', '.item', (page) => page.getByRole('button', { name: 'Edit the model docs' }).click()],
  ['/sources', '.item', open('1 failed')],
  ['/sources?new=1', '.dialog'],
  ['/conversations', '.row .badge'],
  ['/conversations/unanswered', '.item'],
  ['/conversations/c-1', '.read-turn + .panel-card', open('The documents do not support')],
  ['/conversations/c-1', '.read-turn .block', open('Find a ticket')],
  ['/tools', '.item', open('2 tools')],
  ['/tools', '.item', (page) => page.getByRole('button', { name: 'Edit the tool booking' }).click()],
  ['/tools?new=1', '.dialog'],
  ['/sets', '.empty'],
  ['/sets?new=1', '.dialog'],
  ['/sets/none/none', '.empty'],
  ['/assistants', '.item'],
  ['/assistants/new', 'form'],
  ['/assistants/help', 'parley-chat'],
  ['/models', '.item', testModel],
  ['/models?new=1', '.dialog'],
  ['/keys', '.item', (page) => page.getByRole('button', { name: 'Delete the key the shop' }).click()],
  ['/keys?new=1', '.dialog'],
  ['/keys?new=1', '.dialog', makeKey],
  ['/webhooks', '.item'],
  ['/webhooks?new=1', '.dialog'],
  ['/usage', '.chart'],
  ['/start', '.step'],
  ['/compare', '.empty'],
  ['/compare?a=c-1/1&b=c-1/2', '.answer-side .waterfall', compareSides],
  ['/fix', '.empty'],
  ['/fix?a=c-1/1', '.result', chooseDocument],
  ['/fix?a=c-1/1&b=c-1/2', '.answer-side .prose'],
  ['/fix?a=c-1/1&write=1', '.dialog'],
  ['/nowhere', '.empty'],
]

describe.runIf(CHROMIUM)('the pages of the console', () => {
  let stage: ConsoleStage

  beforeAll(async () => {
    stage = await ConsoleStage.set()
  })
  beforeEach(() => async () => expect(await stage.reset()).toEqual([]))

  const go = async (page: Page, address: string, shown: string) => {
    await page.evaluate(`location.hash = '#${address}'`)
    await page.locator(shown).first().waitFor()
    await page.locator('.loading').waitFor({ state: 'detached' })
  }

  for (const { size, colorScheme, options } of LOOKS) {
    test(`have no fault, on a ${size}, ${colorScheme}`, { timeout: 120_000 }, async () => {
      const server = fullServer()
      const page = await stage.tab(options, '#/nowhere')
      await serveBy(page, server)
      await page.reload()
      for (const [address, shown, act] of PAGES) {
        await go(page, '/nowhere', '.empty')
        await go(page, address, address === '/' ? '.suggestion' : shown)
        await act?.(page)
        await expectSound(page, address)
      }
      await go(page, 'c-1', '.turn .cite')
      if (size === 'phone') {
        await page.getByRole('button', { name: 'Why this answer?' }).first().click()
      }
      await page.locator('.panel .waterfall').waitFor()
      await page.getByText('Write the answer').first().click()
      await expectSound(page, 'panel')
      if (size === 'phone') await page.getByRole('button', { name: 'Close the panel' }).click()
      await page.locator('.cite').first().click()
      await expectSound(page, 'card')
      await page.keyboard.press('Escape')
      if (size === 'phone') await page.getByRole('button', { name: 'Open the menu' }).click()
      await expectSound(page, 'menu')
      expect(server.faults).toEqual([])
      // A browser reports each refused request to its console: a connection, and a question to a model.
      expect((await stage.reset()).filter((fault) => !/status of 4(00|22) /.test(fault))).toEqual([])
    })

    test(`have no fault where nothing is there, and where the server fails, on a ${size}, ${colorScheme}`, async () => {
      const server = emptyServer()
      const page = await stage.tab(options, '#/nowhere')
      await serveBy(page, server)
      await page.reload()
      for (const address of ['', '/collections', '/usage']) {
        await go(page, address, '.empty')
        await expectSound(page, `${address} is empty`)
      }
      const gate = Promise.withResolvers<void>()
      server.on('GET /keys', async () => {
        await gate.promise
        return failure(500, 'It broke')
      })
      await page.evaluate("location.hash = '#/keys'")
      await page.locator('.loading').waitFor()
      await expectSound(page, 'loads')
      gate.resolve()
      await page.getByRole('alert').getByText('It broke').waitFor()
      await expectSound(page, 'fails')
      await page.evaluate("sessionStorage.setItem('parley.key', '')")
      await page.reload()
      await page.getByLabel('API key').waitFor()
      await expectSound(page, 'key')
      expect(server.faults).toEqual([])
      // A browser reports each failed request to its console.
      expect((await stage.reset()).filter((fault) => !fault.includes('500'))).toEqual([])
    })
  }
})
