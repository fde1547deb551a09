/** The console around its chat: the menu, addresses, history, and the panel that shows how an answer came about. */
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { loadSample } from '../../scripts/sample.mjs'
import { createModel, KEY, request, url } from '../clients/harness'
import { startLlm } from '../clients/llm'
import { CHROMIUM } from './chromium'
import { ConsoleStage, expectSound, LOOKS } from './console-stage'

const QUESTION = 'How does Parley store history?'

describe.runIf(CHROMIUM)('the console', () => {
  let stage: ConsoleStage

  beforeAll(async () => {
    await loadSample(url, KEY)
    stage = await ConsoleStage.set()
  })
  beforeEach(() => async () => expect(await stage.reset()).toEqual([]))

  for (const { size, colorScheme, options } of LOOKS) {
    test(`has no fault that axe knows, on a ${size}, ${colorScheme}, in any state of the chat`, async () => {
      const page = await stage.tab(options)
      await page.getByRole('button', { name: QUESTION, exact: true }).first().waitFor()
      await expectSound(page, 'empty')
      await page.locator('.suggestion', { hasText: QUESTION }).click()
      await page.getByText('Answered by').waitFor()
      if (size === 'phone') await page.getByRole('button', { name: 'How it came about' }).click()
      await page.getByRole('heading', { name: 'Calls to models' }).waitFor()
      await page.getByText('The exact prompt').click()
      await expectSound(page, 'panel')
      if (size === 'phone') await page.getByRole('button', { name: 'Close the panel' }).click()
      await page.locator('.cite').first().click()
      await expectSound(page, 'card')
      await page.keyboard.press('Escape')
      await page.getByRole('button', { name: 'Settings' }).click()
      await expectSound(page, 'settings')
      await page.getByRole('button', { name: 'Close', exact: true }).click()
      if (size === 'phone') await page.getByRole('button', { name: 'Open the menu' }).click()
      await expectSound(page, 'menu')
      await page.goto(`${url}/#/nowhere`)
      await page.getByRole('heading', { name: 'There is nothing at this address' }).waitFor()
      await expectSound(page, 'not found')
      await page.evaluate("sessionStorage.setItem('parley.key', '')")
      await page.reload()
      await page.getByLabel('API key').waitFor()
      await expectSound(page, 'key')
    })
  }

  test('shows how an answer comes about, while it does and after', async () => {
    const llm = await startLlm({ latency: 400 })
    try {
      const model = await createModel({ model_name: 'openai/gpt', openai_url: llm.url })
      const page = await stage.tab({}, `?model=${model}`)
      const panel = page.getByRole('complementary', { name: 'How it came about' })
      await page.getByLabel('Your question').fill(QUESTION)
      await page.keyboard.press('Enter')
      await panel.getByText('Live').waitFor()
      await panel.locator('.hits li').first().waitFor()
      expect(await panel.getByText('Calls to models').count()).toBe(0)
      await page.getByText('Answered by').waitFor()
      await panel.getByText('Writes the answer').waitFor()
      expect(await panel.getByText('Live').count()).toBe(0)
      expect(await panel.locator('.hits').textContent()).toContain(QUESTION)
      await panel.getByText('The exact prompt').click()
      await panel.locator('pre').filter({ hasText: QUESTION }).first().waitFor()
      // What was said before is part of the next search.
      await page.getByLabel('Your question').fill('How long is it kept?')
      await page.keyboard.press('Enter')
      await panel.locator('.rewritten').waitFor()
      await panel.getByText('Rewrites the question').waitFor()
      const bars = await panel.locator('.waterfall li').allTextContents()
      expect(bars.join()).toMatch(/Rewrite.*Search docs.*Answer.*Altogether/)
      // The first answer is looked at again, and the panel closed.
      await page.getByRole('button', { name: 'How it came about' }).first().click()
      await panel.locator('.asked-question', { hasText: QUESTION }).waitFor()
      await page.getByRole('button', { name: 'How it came about' }).first().click()
      await panel.waitFor({ state: 'detached' })
    } finally {
      await llm.stop()
    }
  })

  test('asks an edited question in place of the old one, and for the answer once more', async () => {
    const page = await stage.tab()
    const ended = page.locator('.turn[aria-busy="false"]')
    await page.getByLabel('Your question').fill('How long is history kept?')
    await page.keyboard.press('Enter')
    await ended.waitFor()
    await page.getByRole('button', { name: 'Edit the question' }).click()
    await page.getByLabel('Your edited question').fill(QUESTION)
    await page.keyboard.press('Enter')
    await page.locator('.turn[aria-busy="false"] .question-text', { hasText: QUESTION }).waitFor()
    await page.getByText('Answered by').waitFor()
    await page.getByRole('button', { name: 'Write a new answer' }).click()
    await page.getByRole('button', { name: 'Write a new answer' }).waitFor()
    const id = decodeURIComponent(new URL(page.url()).hash.slice(1))
    const { turns } = (await request('GET', `/conversations/${id}`)).body
    expect(turns.map(({ question }: { question: string }) => question)).toEqual([QUESTION])
    // What was asked first, and the answer before, can be read.
    await page.getByText('3/3').waitFor()
    await page.getByRole('button', { name: 'Earlier version' }).click()
    await page.getByText('2/3').waitFor()
    await page.getByRole('button', { name: 'Earlier version' }).click()
    await page.getByText('1/3').waitFor()
    expect(await page.locator('.question-text').textContent()).toBe('How long is history kept?')
    await page.getByRole('button', { name: 'Later version' }).click()
    await page.locator('.question-text', { hasText: QUESTION }).waitFor()
  })

  test('lists conversations, and opens, renames and deletes them', async () => {
    const page = await stage.tab()
    const recent = page.getByRole('region', { name: 'Recent' })
    await page.getByLabel('Your question').fill('Which errors can an import have?')
    await page.keyboard.press('Enter')
    await page.getByText('Answered by').waitFor()
    const { hash } = new URL(page.url())
    const item = recent.locator('.recent-item.current')
    await item.hover()
    await item.getByRole('button', { name: /^Rename/ }).click()
    await page.getByLabel('Title', { exact: true }).fill('Errors of imports')
    await page.keyboard.press('Enter')
    await recent.getByRole('link', { name: 'Errors of imports' }).waitFor()
    await page.getByRole('button', { name: 'New conversation' }).click()
    await page.getByRole('heading', { name: 'Ask your documents', level: 2 }).waitFor()
    await recent.getByRole('link', { name: 'Errors of imports' }).click()
    await page.locator('.question-text', { hasText: 'Which errors' }).waitFor()
    expect(new URL(page.url()).hash).toBe(hash)
    await item.hover()
    await item.getByRole('button', { name: /^Delete/ }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('heading', { name: 'Ask your documents', level: 2 }).waitFor()
    await recent.getByRole('link', { name: 'Errors of imports' }).waitFor({ state: 'detached' })
    expect((await request('GET', `/conversations/${hash.slice(1)}`)).status).toBe(404)
  })

  test('stays at the end of a conversation while it is written', async () => {
    const page = await stage.tab()
    const questions = [QUESTION, 'How are keys stored?', 'Which errors can an import have?', QUESTION]
    for (const [at, question] of questions.entries()) {
      await page.getByLabel('Your question').fill(question)
      await page.keyboard.press('Enter')
      await expect.poll(() => page.getByText('Answered by').count(), { timeout: 10_000 }).toBe(at + 1)
      const left = () =>
        page.evaluate(
          "(({ scrollHeight, scrollTop, clientHeight }) => scrollHeight - scrollTop - clientHeight)(document.querySelector('.chat-scroll'))",
        )
      await expect.poll(left).toBeLessThan(2)
    }
    // Who reads further up is left there.
    await page.mouse.move(600, 300)
    await page.mouse.wheel(0, -600)
    await expect
      .poll(() => page.evaluate("document.querySelector('.chat-scroll').scrollTop"))
      .toBeLessThan(
        (await page.evaluate("document.querySelector('.chat-scroll').scrollHeight - innerHeight")) as number,
      )
  })

  test('can be used with the keyboard alone', async () => {
    const page = await stage.tab()
    await page.getByRole('button', { name: QUESTION, exact: true }).first().waitFor()
    await page.keyboard.press('Tab')
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to the page')
    await page.keyboard.press('Enter')
    await page.keyboard.press('Tab')
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Settings')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Settings')
  })

  test('goes on with an answer while another page is looked at', async () => {
    const llm = await startLlm({ latency: 300 })
    try {
      const model = await createModel({ model_name: 'openai/gpt', openai_url: llm.url })
      const page = await stage.tab({}, `?model=${model}`)
      await page.getByLabel('Your question').fill('How are keys stored?')
      await page.keyboard.press('Enter')
      await page.locator('.turn[aria-busy="true"]').waitFor()
      await page.evaluate("location.hash = '#/nowhere'")
      await page.getByRole('heading', { name: 'There is nothing at this address' }).waitFor()
      await page
        .getByRole('region', { name: 'Recent' })
        .getByRole('link', { name: 'How are keys stored?' })
        .click()
      await page.getByText('Answered by').waitFor()
      expect(await page.locator('.turn').count()).toBe(1)
    } finally {
      await llm.stop()
    }
  })
})
