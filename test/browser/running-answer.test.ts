/** An answer on the page that is stopped, or left and come back to, while it is being written. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { loadSample } from '../../scripts/sample.mjs'
import { createModel, KEY, request, url } from '../clients/harness'
import { type Paced, startPaced, words } from '../clients/paced'
import { CHROMIUM, sharedBrowser } from './chromium'

/** Twenty words a second, for three seconds: each is drawn. */
const [WORDS, GAP] = [64, 50]
const ANSWER = words(WORDS).join('')
const LAST = String(WORDS - 1)

describe.runIf(CHROMIUM)('an answer that is being written', () => {
  let browser: Browser
  let page: Page
  let paced: Paced
  let model: string
  const faults: string[] = []

  beforeAll(async () => {
    await loadSample(url, KEY)
    paced = await startPaced()
    // The history of the sample's own model: one can go on with what the other began.
    const history_collection = 'docs_history'
    model = await createModel({
      model_name: `openai/paced-${WORDS}-${GAP}`,
      openai_url: paced.url,
      history_collection,
    })
    browser = await sharedBrowser()
  })
  afterAll(() => paced.stop())

  beforeEach(async () => {
    faults.length = 0
    page = await browser.newPage()
    page.on('pageerror', (error) => faults.push(String(error)))
    await page.goto(`${url}/?model=${model}`)
    return async () => {
      await page.close()
      expect(faults).toEqual([])
    }
  })

  /** Every test asks something else: who asks the same again is shown the answer that nobody read to its end. */
  const ask = async (question: string) => {
    await page.getByLabel('Your question').fill(question)
    await page.keyboard.press('Enter')
  }
  const writing = () => page.locator('.turn[aria-busy="true"] .prose').filter({ hasText: 'plain8' })
  const written = () => page.locator('.turn[aria-busy="false"] .prose').filter({ hasText: LAST })
  const idOf = (address: string) => new URL(address).hash.slice(1)
  const turnsOf = async (id: string) => (await request('GET', `/conversations/${id}`)).body.turns

  test('is stopped for good, and does not become history', async () => {
    const before = paced.abandoned
    await ask('How does Parley store history?')
    await writing().waitFor()
    const id = idOf(page.url())
    await page.getByRole('button', { name: 'Stop' }).click()
    const told = page.locator('.turn[aria-busy="false"] .problem p')
    expect(await told.textContent()).toBe('Stopped. Nothing of this answer is kept.')
    await expect.poll(() => paced.abandoned).toBe(before + 1)
    expect((await request('POST', `/conversations/${id}/stop`)).body).toEqual({ stopped: false })
    expect((await turnsOf(id)) ?? []).toEqual([])
    // What comes next is not lost for it.
    await ask('How long is history kept?')
    await written().waitFor()
    expect(await turnsOf(idOf(page.url()))).toMatchObject([{ question: 'How long is history kept?' }])
  })

  test('that is a follow-up is stopped alone', async () => {
    await page.goto(url)
    await ask('How does Parley store history?')
    await page.locator('.turn[aria-busy="false"]').waitFor()
    await page.goto(`${url}/?model=${model}${new URL(page.url()).hash}`)
    await page.locator('.turn[aria-busy="false"]').waitFor()
    await page.getByRole('button', { name: 'Ask', exact: true }).waitFor()
    await ask('How long is it kept?')
    await writing().waitFor()
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.locator('.turn .problem').getByText('Stopped.').waitFor()
    expect(await turnsOf(idOf(page.url()))).toMatchObject([{ question: 'How does Parley store history?' }])
  })

  test('goes on after a reload, and the conversation with it', async () => {
    await ask('What is kept of a turn?')
    await writing().waitFor()
    await page.reload()
    await written().waitFor()
    expect(await page.locator('.question-text').allTextContents()).toEqual(['What is kept of a turn?'])
    await ask('How long is it kept?')
    await writing().waitFor()
    await page.reload()
    await written().nth(1).waitFor()
    expect(await page.locator('.question-text').allTextContents()).toEqual([
      'What is kept of a turn?',
      'How long is it kept?',
    ])
    const turns = await turnsOf(idOf(page.url()))
    expect(turns).toMatchObject([{ answer: ANSWER }, { answer: ANSWER, standalone: 'a question' }])
    // All of it again, from what is stored.
    await page.reload()
    await written().nth(1).waitFor()
  })

  test('is left with "Back" and come back to with "Forward"', async () => {
    await page.getByRole('button', { name: 'How does Parley store history?', exact: true }).waitFor()
    await ask('Where is history kept?')
    await writing().waitFor()
    await page.goBack()
    await page.getByRole('button', { name: 'How does Parley store history?', exact: true }).waitFor()
    expect(await page.locator('.turn').count()).toBe(0)
    await page.goForward()
    await written().waitFor()
    await page.getByRole('button', { name: 'New conversation' }).click()
    expect(await page.locator('.turn').count()).toBe(0)
    expect(new URL(page.url()).hash).toBe('')
    await page.goBack()
    await written().waitFor()
  })
})

describe.runIf(CHROMIUM)('an address of a conversation', () => {
  test('shows it with the sources that it cites, and says when there is none', async () => {
    await loadSample(url, KEY)
    const asked = { question: 'How does Parley store history?', model: 'docs', collections: ['docs'] }
    const { body } = await request('POST', '/conversations', asked)
    const page = await (await sharedBrowser()).newPage()
    try {
      await page.goto(`${url}/#${body.conversation_id}`)
      await page.locator('.turn[aria-busy="false"]', { hasText: 'two documents' }).waitFor()
      const sources = page.getByRole('list', { name: 'Sources' }).locator('.chip:not(.dim)')
      await sources.filter({ hasText: 'How does Parley store history?' }).waitFor()
      await page.goto(`${url}/#nowhere`)
      await page.getByText('This conversation has expired.').waitFor()
      expect(await page.locator('.turn').count()).toBe(0)
    } finally {
      await page.close()
    }
  })
})
