/**
 * What an answer of many pieces costs the page that shows it: each piece adds to what is shown, which is never made anew,
 * and nothing moves. How long the page's tasks take is measured by `npm run bench -- widget`.
 */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createAssistant, createModel, request, unique, url } from '../clients/harness'
import { CHROMIUM } from './chromium'
import { ConsoleStage } from './console-stage'
import { startWriter, type Writer } from './writer'

/**
 * Nodes that may be put into the page for each one that stands in it at the end. A block that is being written is made
 * anew with each piece, and the whole answer once at its end, for its citations.
 */
const MOST_MADE = 10
const PIECES = 600
const LAST = 'The end of the answer.'

const SECTION = `## A section of the answer

The reef was **filmed** for _five years_, by divers with [a guide](https://example.com/guide) and \`three\` cameras.

- first they looked for the corals
- then for the fish, and for what the fish eat

| what | how many |
| ---- | -------- |
| fish | 12 |

\`\`\`js
const found = reef.filter(({ kind }) => kind === 'ray')
\`\`\`

`

describe.runIf(CHROMIUM)('an answer of many pieces', () => {
  let stage: ConsoleStage
  let writer: Writer
  let assistant: string

  beforeAll(async () => {
    writer = await startWriter()
    writer.gap = 1
    const written = SECTION.repeat(Math.ceil((PIECES * 8) / SECTION.length))
    writer.answer = () => `The reef is in the guide.\n\n${written}${LAST}`
    const name = unique('guide')
    await request('POST', '/collections', { name, fields: [{ name: 'text', type: 'string' }] })
    await request('POST', `/collections/${name}/documents`, { id: '1', text: 'The guide tells of the reef.' })
    const model = await createModel({ model_name: 'openai/writer', openai_url: writer.url })
    assistant = await createAssistant({ model, collections: [name] })
    stage = await ConsoleStage.set()
  })
  afterAll(async () => {
    await writer.stop()
  })
  beforeEach(() => async () => expect(await stage.reset()).toEqual([]))

  /** Watches the page from the first words of an answer to its end. */
  async function watch(page: Page) {
    await page.evaluate(`{
      globalThis.shifts = []
      // A time that runs beside the answer has a digit more now and then.
      const isClock = ({ node }) => (node?.parentElement ?? node)?.closest('.span-time')
      new PerformanceObserver((list) => {
        for (const { value, hadRecentInput, sources } of list.getEntries())
          if (!hadRecentInput && !sources.every(isClock)) shifts.push([value, ...sources.map(({ node }) => node?.className ?? node?.nodeName)])
      }).observe({ type: 'layout-shift' })
      globalThis.made = 0
      const nodesIn = (node) => 1 + [...node.childNodes].reduce((sum, child) => sum + nodesIn(child), 0)
      const seen = new MutationObserver((changes) => {
        for (const { addedNodes } of changes) for (const node of addedNodes) made += nodesIn(node)
      })
      for (const root of [document, document.querySelector('parley-chat')?.shadowRoot])
        if (root) seen.observe(root, { subtree: true, childList: true })
    }`)
    writer.holdAt(3)
    await page.getByRole('textbox').first().fill('What is in the guide?')
    await page.keyboard.press('Enter')
    await page.locator('.prose', { hasText: 'The reef' }).waitFor()
    // A browser excuses what moves within 500 ms of a key.
    await page.evaluate('new Promise((resolve) => setTimeout(resolve, 600))')
    await page.evaluate('shifts.length = 0')
    writer.go()
    writer.holdAt(PIECES - 1)
    await expect
      .poll(
        () =>
          page
            .locator('.prose')
            .textContent()
            .then((text) => text?.length),
        { timeout: 60_000 },
      )
      .toBeGreaterThan(PIECES * 5)
    const shifts = await page.evaluate('shifts')
    // The end is the most work at once: citations are marked, and the trace is shown.
    writer.go()
    await page.locator('.prose', { hasText: LAST }).waitFor()
    await page.locator('.turn[aria-busy="false"]').waitFor()
    const standing = await page.locator('.prose *').count()
    const made = await page.evaluate('made')
    return { made: Number(made) / standing, shifts }
  }

  test('is put into the widget piece by piece, and moves nothing', { timeout: 90_000 }, async () => {
    const page = await stage.tab({}, 'off.html')
    const html = `<!doctype html><html lang="en"><title>A page</title>
      <script type="module" src="${url}/widget/parley-chat.js"></script>
      <main><h1>A page</h1><parley-chat assistant="${assistant}" key="xyz"></parley-chat></main></html>`
    await page.route('**/a-page', (route) => route.fulfill({ contentType: 'text/html', body: html }))
    await page.goto(`${url}/a-page`)
    const { made, shifts } = await watch(page)
    expect(made).toBeLessThan(MOST_MADE)
    expect(shifts).toEqual([])
  })

  test("is put into the console's chat piece by piece, and moves nothing", { timeout: 90_000 }, async () => {
    const page = await stage.tab({}, `?assistant=${assistant}`)
    const { made, shifts } = await watch(page)
    expect(made).toBeLessThan(MOST_MADE)
    expect(shifts).toEqual([])
  })
})
