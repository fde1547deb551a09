/** The pages of examples/ in a real browser, from another origin than Parley's, reloaded in the middle of an answer. */
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join } from 'node:path'
import { build } from 'esbuild'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createAssistant, createModel, createShows, request, url } from '../clients/harness'
import { type Paced, startPaced, words } from '../clients/paced'
import { CHROMIUM, sharedBrowser } from './chromium'

const EXAMPLES = join(import.meta.dirname, '../../examples')

/** Twenty words a second, for three seconds: long enough for a page to be loaded again meanwhile. */
const [WORDS, GAP] = [64, 50]
const ANSWER = words(WORDS).join('')
const LAST = String(WORDS - 1)

const TYPES: Record<string, string> = { '.js': 'text/javascript', '.css': 'text/css' }

const readExample = (path: string): string =>
  existsSync(join(EXAMPLES, path)) && extname(path) !== '' ? readFileSync(join(EXAMPLES, path), 'utf8') : ''

describe.runIf(CHROMIUM)('the example', () => {
  let browser: Browser
  let page: Page
  let paced: Paced
  let pages: Server
  let origin: string
  let assistant: string
  let citingAssistant: string
  const faults: string[] = []
  const conversations: string[] = []

  beforeAll(async () => {
    paced = await startPaced()
    const shows = await createShows()
    const model = await createModel({ model_name: `openai/paced-${WORDS}-${GAP}`, openai_url: paced.url })
    assistant = await createAssistant({ model, collections: [shows] })
    const citing = await createModel({ model_name: 'local/extractive', api_key: undefined })
    citingAssistant = await createAssistant({ model: citing, collections: [shows] })
    const files = await bundle()
    const place = (text: string): string =>
      text
        .replaceAll('http://localhost:8108', url)
        .replaceAll('/ui/default', `/ui/${assistant}`)
        .replaceAll('/deep-chat/default', `/deep-chat/${assistant}`)
        .replaceAll('agent: "default"', `agent: '${assistant}'`)
        .replaceAll('localhost:8108', new URL(url).host)
        .replaceAll('assistant="default"', `assistant="${assistant}"`)
        .replaceAll('assistant: "default"', `assistant: '${assistant}'`)
        .replaceAll(`${url}/chat`, `${url}/a/${assistant}/chat`)
        .replace('model: "docs", collections: ["docs"]', `model: '${model}', collections: ['${shows}']`)
    pages = createServer(({ url: path = '' }, response) => {
      const text = files.get(path) ?? readExample(path)
      response.setHeader('content-type', TYPES[extname(path)] ?? 'text/html')
      response.end(place(text))
    }).listen(0, '127.0.0.1')
    await once(pages, 'listening')
    origin = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`
    browser = await sharedBrowser()
  })
  afterAll(async () => {
    pages.close()
    await paced.stop()
  })

  beforeEach(async () => {
    faults.length = 0
    conversations.length = 0
    page = await browser.newPage()
    page.on('pageerror', (error) => faults.push(String(error)))
    page.on('response', (response) => {
      const id = response.headers()['x-parley-conversation-id']
      if (id !== undefined) conversations.push(id)
    })
    return async () => {
      await page.close()
      expect(faults).toEqual([])
    }
  })

  /** The scripts of the pages, by path. */
  async function bundle(): Promise<Map<string, string>> {
    const { outputFiles } = await build({
      // As examples/README.md says it.
      entryPoints: readdirSync(EXAMPLES)
        .filter((file) => /-page\.jsx?$/.test(file))
        .map((file) => join(EXAMPLES, file)),
      bundle: true,
      jsx: 'automatic',
      outdir: '/',
      write: false,
      logLevel: 'silent',
    })
    return new Map(outputFiles.map(({ path, text }) => [path, text]))
  }

  const ask = async (question: string): Promise<void> => {
    await page.getByLabel('Your question').fill(question)
    await page.keyboard.press('Enter')
  }

  const halfWay = (selector: string) => page.locator(selector).filter({ hasText: 'plain8' }).waitFor()

  const turnsOf = async (id = conversations[0]) => (await request('GET', `/conversations/${id}`)).body.turns

  test('use-chat goes on with its answer after a reload, and with its chat', async () => {
    await page.goto(`${origin}/use-chat-page.html`)
    await ask('an action series')
    await halfWay('.assistant')
    await page.reload()
    // The page is ready before it resumes, and again when the answer is whole.
    await page.locator('.assistant').filter({ hasText: LAST }).waitFor()
    await page.locator('output', { hasText: 'ready' }).waitFor()
    expect(await page.locator('.user p').allTextContents()).toEqual(['an action series'])
    expect(await page.locator('.assistant').count()).toBe(1)
    expect(await page.locator('.assistant p').textContent()).toBe(ANSWER)
    await ask('another one')
    await page.locator('.assistant').nth(1).filter({ hasText: LAST }).waitFor()
    expect(await turnsOf()).toMatchObject([
      { question: 'an action series', answer: ANSWER },
      { question: 'another one', standalone: 'a question' },
    ])
  })

  test('use-chat shows the sources that an answer cites, and no other', async () => {
    const paced = assistant
    assistant = citingAssistant
    try {
      await page.goto(`${origin}/use-chat-page.html`)
      await ask('Who salvages warships?')
      await page.locator('output', { hasText: 'ready' }).waitFor()
      await page.locator('.assistant', { hasText: 'a crew that salvages warships' }).waitFor()
      expect(await page.locator('.assistant li').allTextContents()).toEqual(['Starship Salvage'])
    } finally {
      assistant = paced
    }
  })

  test('ai-chat goes on after an answer that a reload has lost sight of', async () => {
    await page.goto(`${origin}/ai-chat-page.html`)
    await ask('an action series')
    await halfWay('#answer')
    await page.reload()
    expect(await page.locator('#answer').textContent()).toBe('')
    await ask('another one')
    await page.locator('output', { hasText: 'ready' }).waitFor()
    expect(await page.locator('#answer').textContent()).toBe(ANSWER)
    // Nobody read the first answer any more, so the new question ended it.
    expect(await turnsOf()).toMatchObject([{ question: 'another one', answer: ANSWER }])
  })

  test('event-source reads its answer from the beginning after a reload', async () => {
    await page.goto(`${origin}/event-source-page.html`)
    await ask('an action series')
    await halfWay('#answer')
    await page.reload()
    await page.locator('#answer', { hasText: LAST }).waitFor()
    expect(await page.locator('#answer').textContent()).toBe(ANSWER)
  })

  test('use-agent-chat shows its chat again after a reload', async () => {
    await page.goto(`${origin}/use-agent-chat-page.html`)
    await ask('an action series')
    await page.locator('.assistant').filter({ hasText: LAST }).waitFor()
    await page.locator('output', { hasText: 'ready' }).waitFor()
    await page.reload()
    await page.locator('.assistant').filter({ hasText: LAST }).waitFor()
    expect(await page.locator('.user p').allTextContents()).toEqual(['an action series'])
  })

  test('deep-chat shows an answer', async () => {
    await page.goto(`${origin}/deep-chat-page.html`)
    await page.locator('deep-chat #text-input').fill('an action series')
    await page.keyboard.press('Enter')
    await page.locator('deep-chat').getByText(LAST).waitFor()
  })

  test.each(['widget', 'react', 'vue'])('the widget answers on the page of %s', async (name) => {
    const paced = assistant
    assistant = citingAssistant
    try {
      await page.goto(`${origin}/${name}-page.html`)
      if (name === 'widget') await page.getByRole('button', { name: 'Open chat' }).click()
      const chat = page.locator('parley-chat')
      await chat.getByRole('textbox').fill('Who salvages warships?')
      await page.keyboard.press('Enter')
      await chat.locator('.turn', { hasText: 'a crew that salvages warships' }).waitFor()
      // What the page itself hears of the answer.
      if (name !== 'widget') await page.locator('output', { hasText: '1 citations' }).waitFor()
    } finally {
      assistant = paced
    }
  })
})
