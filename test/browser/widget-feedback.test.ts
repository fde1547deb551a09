/** Rating answers and sharing a conversation, in <parley-chat> in a real browser. */
import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { request } from '../clients/harness'
import { CHROMIUM } from './chromium'
import { answered, ask, QUESTION, Stage } from './widget-stage'

const ANSWER =
  'Make a key that is **bound to an assistant**. It may ask that assistant and nothing else [keys.txt].'

describe.runIf(CHROMIUM)('the widget', () => {
  let stage: Stage
  let visitor: BrowserContext
  let page: Page

  beforeAll(async () => {
    stage = await Stage.set()
  })
  afterAll(() => stage.strike())

  beforeEach(async () => {
    stage.writer.answer = () => ANSWER
    visitor = await stage.visitor()
    return async () => expect(await stage.reset()).toEqual([])
  })

  const open = async (attributes: Record<string, string> = {}) => {
    page = await stage.tab(visitor, attributes)
    await page.evaluate(`{
      window.heard = []
      document.addEventListener('parley-feedback', ({ detail }) => window.heard.push(detail))
    }`)
  }

  const good = () => page.getByRole('button', { name: 'Good answer' })
  const bad = () => page.getByRole('button', { name: 'Bad answer' })
  const pressed = async () => [
    await good().getAttribute('aria-pressed'),
    await bad().getAttribute('aria-pressed'),
  ]
  const heard = () => page.evaluate('window.heard') as Promise<Record<string, unknown>[]>
  const conversation = () =>
    page.evaluate("document.querySelector('parley-chat').conversation") as Promise<string>
  const focused = () =>
    page.evaluate(
      "document.querySelector('parley-chat').shadowRoot.activeElement?.getAttribute('aria-label')",
    ) as Promise<string | null>
  const stored = async () =>
    (await request('GET', `/conversations/${await conversation()}`)).body.turns[0].feedback

  test('takes a thumb and a comment, keeps them after a reload, and takes them back', async () => {
    await open()
    await ask(page)
    await answered(page)
    expect(await pressed()).toEqual(['false', 'false'])
    await bad().click()
    await page.getByText('Thank you for your feedback.').first().waitFor()
    expect(await pressed()).toEqual(['false', 'true'])
    await page.getByLabel('Tell us more (optional)').fill('Which keys?')
    await page.locator('.feedback').getByRole('button', { name: 'Send' }).click()
    await expect.poll(heard).toHaveLength(2)
    expect(await heard()).toEqual([
      { conversation: await conversation(), turn: 1, rating: 'down' },
      { conversation: await conversation(), turn: 1, rating: 'down', comment: 'Which keys?' },
    ])
    expect(await stored()).toMatchObject([{ rating: 'down', comment: 'Which keys?', own: false }])

    await page.reload()
    await answered(page)
    await expect.poll(pressed).toEqual(['false', 'true'])
    await good().click()
    await expect.poll(pressed).toEqual(['true', 'false'])
    expect(await stored()).toMatchObject([{ rating: 'up' }])
    await page.keyboard.press('Escape')
    await good().click()
    await expect.poll(pressed).toEqual(['false', 'false'])
    expect(await stored()).toBeUndefined()
  })

  test('asks what is wrong with an answer, and keeps the reasons beside the comment', async () => {
    await open()
    await ask(page)
    await answered(page)
    const reason = (name: string) => page.getByRole('button', { name, exact: true })
    await good().click()
    await page.getByLabel('Tell us more (optional)').waitFor()
    expect(await reason('Out of date').count()).toBe(0)
    await bad().click()
    await page.getByRole('group', { name: 'What is wrong with it?' }).waitFor()
    // One after another, however fast they are pressed.
    await page.getByRole('group', { name: 'What is wrong with it?' }).evaluate((group) => {
      for (const name of ['outdated', 'wrong']) Object(group).querySelector(`[data-reason=${name}]`).click()
    })
    await reason('Something is missing').click()
    await reason('It is wrong').click()
    await page.getByLabel('Tell us more (optional)').fill('Of last year.')
    await page.locator('.feedback').getByRole('button', { name: 'Send' }).click()
    await expect.poll(heard).toHaveLength(7)
    const said = { rating: 'down', comment: 'Of last year.', reasons: ['outdated', 'incomplete'] }
    expect((await heard()).at(-1)).toMatchObject(said)
    expect(await stored()).toMatchObject([said])

    await page.reload()
    await answered(page)
    await expect.poll(pressed).toEqual(['false', 'true'])
    await good().click()
    await expect.poll(pressed).toEqual(['true', 'false'])
    expect((await stored())[0]).not.toHaveProperty('reasons')
  })

  test('is rated with the keyboard alone', async () => {
    await open()
    await ask(page)
    await answered(page)
    await good().focus()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Space')
    const comment = page.getByLabel('Tell us more (optional)')
    await comment.waitFor()
    // The reasons come before it.
    for (let presses = 0; presses < 6; presses += 1) await page.keyboard.press('Tab')
    await expect.poll(focused).toBe('Tell us more (optional)')
    await page.keyboard.press('Escape')
    expect(await comment.isVisible()).toBe(false)
    expect(await focused()).toBe('Bad answer')
    const box = await bad().boundingBox()
    expect(Math.min(box!.width, box!.height)).toBeGreaterThanOrEqual(24)
  })

  test('says so where a rating does not arrive, and shows what the server has', async () => {
    await open()
    await ask(page)
    await answered(page)
    await page.route('**/feedback', (route) => route.fulfill({ status: 409, json: { message: 'no' } }))
    await good().click()
    await page.getByText('Something went wrong.').first().waitFor()
    expect(await pressed()).toEqual(['false', 'false'])
    expect(await heard()).toEqual([])
    // The browser itself reports the status.
    expect(stage.faults.splice(0)).toHaveLength(1)
  })

  test('asks for no rating where it is not wanted', async () => {
    await open({ 'no-feedback': '' })
    await ask(page)
    await answered(page)
    expect(await good().count()).toBe(0)
  })

  test('copies the conversation as Markdown, with its sources as links', async () => {
    await visitor.grantPermissions(['clipboard-read', 'clipboard-write'])
    await open()
    expect(await page.getByRole('button', { name: 'Copy the conversation' }).count()).toBe(0)
    await ask(page)
    await answered(page)
    await page.getByRole('button', { name: 'Copy the conversation as Markdown' }).click()
    const markdown = `## ${QUESTION}

Make a key that is **bound to an assistant**.[\\[1\\]](<https://docs.example.com/keys>) It may ask that assistant and nothing else[\\[1\\]](<https://docs.example.com/keys>).

1. [API keys](<https://docs.example.com/keys>)
`
    await expect.poll(() => page.evaluate('navigator.clipboard.readText()')).toBe(markdown)
    expect(await page.evaluate("document.querySelector('parley-chat').asMarkdown()")).toBe(markdown)
  })
})
