/** A history collection that is deleted in the console: what breaks is named before, and mended after. */
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createAssistant, createModel, createShows, request, url } from '../clients/harness'
import { CHROMIUM } from './chromium'
import { ConsoleStage } from './console-stage'

describe.runIf(CHROMIUM)('a history collection', () => {
  let stage: ConsoleStage

  beforeAll(async () => {
    stage = await ConsoleStage.set()
  })
  beforeEach(() => async () => expect(await stage.reset()).toEqual([]))

  test('is not deleted unawares, and made again where it is missed', async () => {
    const shows = await createShows()
    const model = await createModel({ model_name: 'local/extractive' })
    const assistant = await createAssistant({ model, collections: [shows] })
    const { body } = await request('GET', `/conversations/models/${model}`)
    const history: string = body.history_collection
    const ask = () =>
      request('POST', `/a/${assistant}/conversations`, { question: 'Which show is about a bar?' })
    expect((await ask()).status).toBe(200)

    const page = await stage.tab({}, '#/collections')
    await page.getByRole('button', { name: `Delete the collection ${history}` }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText(`Conversations with ${model} are kept here.`).waitFor()
    expect(await dialog.textContent()).toContain('2 messages of conversations are deleted for good.')
    expect(await dialog.textContent()).toContain(assistant)
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: `Delete the collection ${shows}` }).click()
    await dialog.getByText(`Searched by ${assistant}`).waitFor()
    await page.keyboard.press('Escape')

    await page.getByRole('button', { name: `Delete the collection ${history}` }).click()
    await dialog.getByRole('button', { name: 'Delete the collection' }).click()
    await dialog.waitFor({ state: 'hidden' })
    expect((await ask()).status).toBe(400)

    await page.goto(`${url}/#/models`)
    const item = page.locator('li', { hasText: model })
    await item.getByText(`its history ${history} was deleted.`).waitFor()
    await item.getByRole('button', { name: 'Make an empty one' }).click()
    await item.getByRole('button', { name: 'Test' }).waitFor()
    await expect.poll(async () => (await ask()).status, { timeout: 10_000 }).toBe(200)
  })
})
