/** Reaching people from <parley-chat>, and pages that it finds while its visitor types, in a real browser. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { request } from '../clients/harness'
import { CHROMIUM } from './chromium'
import { answered, ask, Stage } from './widget-stage'

const ANSWER = 'A key that is bound to an assistant may ask that assistant and nothing else [keys.txt].'

describe.runIf(CHROMIUM)('the widget', () => {
  let stage: Stage
  let visitor: BrowserContext
  let page: Page
  let desk: Server
  /** bodies that the webhook got, and the status that it replies with */
  const received: string[] = []
  const status = 200

  beforeAll(async () => {
    desk = createServer(async (request, response) => {
      let body = ''
      for await (const piece of request.setEncoding('utf8')) body += piece
      received.push(body)
      response.writeHead(status).end()
    }).listen(0, '127.0.0.1')
    await once(desk, 'listening')
    const { port } = desk.address() as AddressInfo
    stage = await Stage.set({
      handover: { webhook: `http://127.0.0.1:${port}/`, after: 1 },
      search: true,
      minimum_support: 1,
      below_support: 'withhold',
    })
  })
  afterAll(async () => {
    await stage.strike()
    desk.close()
  })

  beforeEach(async () => {
    stage.writer.answer = () => ANSWER
    visitor = await stage.visitor()
    return async () => expect(await stage.reset()).toEqual([])
  })

  const open = async (attributes: Record<string, string> = {}) => {
    page = await stage.tab(visitor, attributes)
    await page.evaluate(`{
      window.heard = []
      for (const name of ['parley-handover', 'parley-result'])
        document.addEventListener(name, ({ type, detail }) => window.heard.push({ type, ...detail }))
    }`)
  }
  const heard = () => page.evaluate('window.heard') as Promise<Record<string, unknown>[]>
  const person = () => page.locator('.handover-button')

  test('hands a conversation over by a form, which keeps what was typed where the server cannot be reached', async () => {
    await open()
    await person().waitFor({ state: 'attached' })
    expect(await person().isVisible()).toBe(false)
    await ask(page)
    await answered(page)
    // The answer was not declined, so it is not offered by itself.
    expect(await page.locator('.handover .followup').isVisible()).toBe(false)
    await person().click()
    await page.getByLabel('Your email address or phone number').fill('ann@example.com')
    await page.getByLabel('What do you need? (optional)').fill('Please call me.')
    stage.line.cut()
    const send = page.locator('.handover').getByRole('button', { name: 'Send' })
    await send.click()
    await page.locator('.handover-note', { hasText: 'The server cannot be reached.' }).waitFor()
    expect(await page.getByLabel('What do you need? (optional)').inputValue()).toBe('Please call me.')
    stage.faults.splice(0)
    stage.line.mend()
    await send.click()
    await page.locator('.handover-note', { hasText: 'Sent. A person will reply to you.' }).waitFor()
    const id = await page.evaluate("document.querySelector('parley-chat').conversation")
    expect(await heard()).toEqual([{ type: 'parley-handover', conversation: id }])
    expect(JSON.parse(received.at(-1)!).data).toMatchObject({
      conversation_id: id,
      contact: 'ann@example.com',
      message: 'Please call me.',
      turns: [{ turn: 1 }],
    })
  })

  test('shows what a person replies, by name and after a reload, while the conversation is open', async () => {
    await open()
    await ask(page)
    await answered(page)
    await person().click()
    await page.getByLabel('Your email address or phone number').fill('ann@example.com')
    await page.locator('.handover').getByRole('button', { name: 'Send' }).click()
    await page.locator('.handover-note', { hasText: 'Sent. A person will reply to you.' }).waitFor()
    const id = await page.evaluate("document.querySelector('parley-chat').conversation")
    const reply = (message: string) =>
      request('POST', `/conversations/${id}/replies`, { author: 'Mary', message })
    expect((await reply('We deliver **on Monday**.')).body).toEqual({ turn: 2 })
    const said = page.locator('.turn').nth(1)
    await said.locator('strong', { hasText: 'on Monday' }).waitFor()
    expect(await said.locator('.author').textContent()).toBe('Mary')
    expect(await said.locator('.asked').isVisible()).toBe(false)
    // Nothing of it can be rated, or asked again.
    expect(await said.locator('.tools button').count()).toBe(1)
    await page.reload()
    await said.locator('.author', { hasText: 'Mary' }).waitFor()
    await reply('Or on Tuesday.')
    await page.locator('.turn').nth(2).getByText('Or on Tuesday.').waitFor()
    await page.getByRole('textbox', { name: 'Ask a question' }).fill('What may a key do?')
    await page.getByRole('textbox', { name: 'Ask a question' }).press('Enter')
    await answered(page, 4)
    expect(await page.locator('.author').count()).toBe(2)
  })

  test('says outside of office hours what the assistant has for that', async () => {
    const outside = 'We are back on Monday.'
    await visitor.route(/\/a\/[^/]+$/, async (route) => {
      const response = await route.fetch()
      const front = await response.json()
      await route.fulfill({ response, json: { ...front, handover: { ...front.handover, outside } } })
    })
    await open()
    await ask(page)
    await answered(page)
    await person().click()
    await page.locator('.handover-hint', { hasText: outside }).waitFor()
    await page.getByLabel('Your email address or phone number').fill('ann@example.com')
    await page.locator('.handover').getByRole('button', { name: 'Send' }).click()
    await page.locator('.handover-note', { hasText: outside }).waitFor()
  })

  test('offers people below an answer that was declined, until one is answered', async () => {
    stage.writer.answer = () => 'The tower of the office is 412 metres high.'
    await open()
    await ask(page, 'How high is the tower?')
    const offer = page.locator('.handover').getByRole('button', { name: 'Talk to a person' })
    await offer.waitFor()
    await offer.click()
    expect(await offer.isVisible()).toBe(false)
    await page.getByLabel('Your email address or phone number').press('Escape')
    await offer.waitFor()
    stage.writer.answer = () => ANSWER
    await page.getByRole('textbox').fill('What may a key do?')
    await page.getByRole('textbox').press('Enter')
    await answered(page, 2)
    await offer.waitFor({ state: 'hidden' })
  })

  test('finds pages while one types: arrows choose, Enter opens the chosen one, or asks', async () => {
    await open({ search: '' })
    const box = page.getByRole('combobox', { name: 'Ask a question' })
    await box.pressSequentially('put the ch')
    const option = page.getByRole('option', { name: /Put the chat on your site/ })
    await option.waitFor()
    expect(await box.getAttribute('aria-expanded')).toBe('true')
    await box.press('ArrowDown')
    expect(await option.getAttribute('aria-selected')).toBe('true')
    expect(await box.getAttribute('aria-activedescendant')).toBe(await option.getAttribute('id'))
    const opened = visitor.waitForEvent('page')
    await visitor.route('https://docs.example.com/**', (route) => route.fulfill({ body: 'The page.' }))
    await box.press('Enter')
    expect((await opened).url()).toBe('https://docs.example.com/widget')
    expect(await heard()).toMatchObject([{ type: 'parley-result', document_id: 'widget' }])
    await page.bringToFront()
    await box.press('Escape')
    await page.getByRole('listbox').waitFor({ state: 'hidden' })
    await box.fill('What may a key do?')
    await page.getByRole('listbox').waitFor()
    await box.press('Enter')
    await answered(page)
    expect(await page.getByRole('listbox').isVisible()).toBe(false)
  })
})
