/** <parley-chat> in a real browser, on a page of another origin under a strict policy. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { CHROMIUM } from './chromium'
import { answered, answers, ask, QUESTION, Stage } from './widget-stage'

const ANSWER = `Make a key that is **bound to an assistant**. It may ask that assistant and nothing else [keys.txt].

### Steps

1. Make the key on a server.
2. Paste the element:

\`\`\`html
<parley-chat></parley-chat>
\`\`\`

3. Say hello.

0) From nought.

| limit | what it does | at most | by default |
| --- | :--- | ---: | :---: |
| origins | pages | 20 | none |

See [the guide](https://docs.example.com/keys).`

describe.runIf(CHROMIUM)('the widget', () => {
  let stage: Stage
  let page: Page

  beforeAll(async () => {
    stage = await Stage.set()
  })
  afterAll(() => stage.strike())

  beforeEach(async () => {
    stage.writer.answer = () => ANSWER
    return async () => expect(await stage.reset()).toEqual([])
  })

  const open = async (attributes: Record<string, string> = {}) => {
    page = await stage.tab(await stage.visitor(), attributes)
    return page
  }

  const question = () => page.locator('.question-text')

  test('offers the first questions, and shows sources before the answer, set as Markdown says', async () => {
    await open()
    const script = await fetch(`${stage.line.url}/widget/parley-chat.js`)
    expect(script.headers.get('access-control-allow-origin')).toBe('*')
    stage.writer.holdAt(0)
    await page.getByRole('button', { name: QUESTION }).click()
    await page.locator('.chip', { hasText: 'API keys' }).waitFor()
    expect(await page.locator('.block').count()).toBe(0)
    stage.writer.go()
    const answer = await answered(page)
    expect(await answer.locator('strong').textContent()).toBe('bound to an assistant')
    const lists = await answer.locator('ol').evaluateAll((all) => all.map((list) => Object(list).start))
    expect(lists).toEqual([1, 3, 0])
    expect(await answer.locator('ol > li').count()).toBe(4)
    expect(await answer.locator('pre code').textContent()).toContain('<parley-chat>')
    expect(await answer.locator('.language').textContent()).toBe('html')
    const cells = await answer
      .locator('td')
      .evaluateAll((all) =>
        all.map((cell) => [cell.textContent, Object(globalThis).getComputedStyle(cell).textAlign]),
      )
    expect(cells).toEqual([
      ['origins', 'start'],
      ['pages', 'start'],
      ['20', 'end'],
      ['none', 'center'],
    ])
    const link = answer.getByRole('link', { name: 'the guide' })
    expect(await link.getAttribute('rel')).toContain('noopener')
    expect(await answer.textContent()).not.toContain('keys.txt')
  })

  test('makes only the last block anew while an answer of 2,000 pieces grows', async () => {
    const blocks = Array.from({ length: 80 }, (_, n) => `Paragraph ${n} ${'of plain words '.repeat(13)}end.`)
    stage.writer.answer = () => blocks.join('\n\n')
    expect(blocks.join('\n\n').length).toBeGreaterThan(2_000 * 8)
    await open()
    await page.evaluate(`{
      const prose = () => document.querySelector('parley-chat').shadowRoot.querySelector('.prose')
      window.touched = { earlier: 0, last: 0 }
      const watch = () => {
        if (!prose()) return requestAnimationFrame(watch)
        new MutationObserver((records) => {
          const all = [...prose().children]
          for (const { target } of records) {
            const at = all.findIndex((block) => block.contains(target))
            if (at < 0) continue
            // Blocks that were new in this round are the end of it.
            const known = all[at].seen === true && at < all.length - 1 && all[at + 1].seen === true
            window.touched[known ? 'earlier' : 'last'] += 1
          }
          for (const block of all) block.seen = true
        }).observe(prose(), { childList: true, subtree: true, characterData: true })
      }
      watch()
      window.shift = 0
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) window.shift += entry.value
      }).observe({ type: 'layout-shift', buffered: true })
    }`)
    await ask(page)
    const answer = await answered(page)
    expect(await answer.locator('.block').count()).toBe(80)
    const touched = (await page.evaluate('window.touched')) as { earlier: number; last: number }
    expect(touched.earlier).toBe(0)
    expect(touched.last).toBeGreaterThan(0)
    expect(
      await answer.locator('.block').evaluateAll((all) => all.every((block) => Object(block).seen)),
    ).toBe(true)
    console.log(`layout shift while 2,000 pieces came: ${await page.evaluate('window.shift')}`)
  })

  test('shows the passage that a digit stands for, marked, with a link to its page', async () => {
    await open()
    await page.evaluate(
      `document.addEventListener('parley-citation', ({ detail }) => { window.cited = detail })`,
    )
    await ask(page)
    const answer = await answered(page)
    await answer.locator('.cite').first().click()
    const card = page.getByRole('dialog', { name: 'API keys' })
    expect(await card.locator('mark').textContent()).toContain('bound to an assistant')
    expect(await card.locator('.card-path').textContent()).toBe('What a key may do')
    const address = (await card.getByRole('link').getAttribute('href')) ?? ''
    expect(decodeURIComponent(address)).toBe(
      'https://docs.example.com/keys#:~:text=A key that is bound to an assistant may ask that assistant and nothing else.',
    )
    expect(await page.evaluate('window.cited')).toMatchObject({ document_id: 'keys', title: 'API keys' })
    await page.keyboard.press('Escape')
    await card.waitFor({ state: 'hidden' })
    expect(
      await page.evaluate(`document.querySelector('parley-chat').shadowRoot.activeElement.className`),
    ).toBe('cite')
  })

  test('shows passages to a pointer that rests and to the keyboard, and Escape closes them', async () => {
    await open({ mode: 'bubble', open: '' })
    await ask(page)
    const digits = (await answered(page)).locator('.cite')
    const card = page.getByRole('dialog', { name: 'API keys' })
    await digits.first().hover()
    await card.waitFor()
    expect(await card.locator('.support').textContent()).toBe('The sources support this sentence.')
    // The pointer may go on to the card, and what it opened took no focus away.
    await card.locator('mark').hover()
    expect(
      await page.evaluate(`document.querySelector('parley-chat').shadowRoot.activeElement.tagName`),
    ).toBe('TEXTAREA')
    await page.locator('.question-text').hover()
    await card.waitFor({ state: 'hidden' })
    await digits.first().hover()
    await card.waitFor()
    await page.keyboard.press('Escape')
    await card.waitFor({ state: 'hidden' })
    await page.locator('dialog[open]').waitFor()

    await page.locator('.question-text').hover()
    while (!(await digits.last().evaluate((digit) => digit.matches(':focus'))))
      await page.keyboard.press('Shift+Tab')
    await card.waitFor()
    expect(await digits.last().getAttribute('aria-expanded')).toBe('true')
    await page.keyboard.press('Escape')
    await card.waitFor({ state: 'hidden' })
    await page.keyboard.press('Enter')
    await card.waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    expect(await card.getByRole('link').evaluate((link) => link.matches(':focus'))).toBe(true)
  })

  test('marks for each digit of a paragraph the sentence before it', async () => {
    stage.writer.answer = () =>
      'The admin key may do everything [keys.txt]. A key that is bound to an assistant asks that assistant alone [keys.txt].'
    await open()
    await ask(page)
    const digits = (await answered(page)).locator('.cite')
    const card = page.getByRole('dialog', { name: 'API keys' })
    for (const [at, said] of ['The admin key may do everything', 'A key that is bound'].entries()) {
      await digits.nth(at).click()
      expect(await card.locator('mark').textContent()).toContain(said)
      await page.keyboard.press('Escape')
      await card.waitFor({ state: 'hidden' })
    }
  })

  test('dims on request what no source supports, says what is missing, and does so after a reload', async () => {
    const found = 'A key that is *bound* to an assistant may ask that assistant and nothing else'
    const penguins = 'Penguins swim across the [frozen ocean](https://example.com) every winter.'
    stage.writer.answer = () =>
      `${found} [keys.txt]. ${penguins}\n\n- Keys are seen everywhere within 300 seconds [keys.txt].`
    await open()
    await ask(page)
    for (const _ of ['asked', 'reloaded']) {
      const answer = await answered(page)
      const text = await answer.textContent()
      const check = page.getByRole('button', { name: 'Check against the sources' })
      await check.click()
      expect(await check.getAttribute('aria-pressed')).toBe('true')
      await page
        .locator('.check-note', { hasText: 'Sentences that the sources do not fully support: 2 of 3.' })
        .waitFor()
      const marked = async (kind: string) => (await answer.locator(kind).allTextContents()).join('')
      expect(await marked('.unfound')).toBe('Penguins swim across the frozen ocean every winter.')
      expect(await marked('.partly')).toBe('Keys are seen everywhere within 300 seconds')
      await answer.getByRole('button', { name: 'Not found in the sources.' }).hover()
      await page.getByRole('dialog', { name: 'Not found in the sources.' }).waitFor()
      await page.keyboard.press('Escape')
      await answer.getByRole('button', { name: 'The sources support this sentence in part.' }).click()
      const card = page.getByRole('dialog', { name: 'The sources support this sentence in part.' })
      await card.getByText('Not in the sources: 300').waitFor()
      await page.keyboard.press('Escape')
      await answer.locator('li .cite').first().click()
      await page.getByRole('dialog', { name: 'API keys' }).getByText('Not in the sources: 300').waitFor()
      await page.keyboard.press('Escape')
      await check.click()
      expect(await answer.locator('.unfound, .partly, .doubt').count()).toBe(0)
      expect(await answer.textContent()).toBe(text)
      await page.reload()
    }
  })

  test('keeps the passage open when a scroll ends that was under way, and closes it when its digit is gone', async () => {
    page = await stage.tab(await stage.visitor({ viewport: { width: 400, height: 420 } }))
    await ask(page)
    await (await answered(page)).locator('.cite').first().click()
    const card = page.getByRole('dialog', { name: 'API keys' })
    await card.waitFor()
    const scroll = (pixels: number) =>
      page.evaluate(`new Promise((done) => {
        const scroller = document.querySelector('parley-chat').shadowRoot.querySelector('.scroller-y')
        scroller.addEventListener('scroll', () => requestAnimationFrame(done), { once: true })
        scroller.scrollBy(0, ${pixels})
      })`)
    await scroll(-4)
    expect(await card.isVisible()).toBe(true)
    await scroll(-80)
    await card.waitFor({ state: 'hidden' })
  })

  test('copies the answer without the digits of its citations, and code alone', async () => {
    const context = await stage.visitor({ permissions: ['clipboard-read', 'clipboard-write'] })
    page = await stage.tab(context)
    await ask(page)
    await answered(page)
    await page.getByRole('button', { name: 'Copy the answer' }).click()
    const copied = () => page.evaluate('navigator.clipboard.readText()')
    await expect
      .poll(copied)
      .toContain('**bound to an assistant**. It may ask that assistant and nothing else.')
    expect(await copied()).not.toMatch(/\[\d\]|keys\.txt/)
    await page.getByRole('button', { name: 'Copy the code' }).click()
    await expect.poll(copied).toBe('<parley-chat></parley-chat>')
  })

  test('stops, tries again, asks follow-ups and starts afresh', async () => {
    stage.writer.answer = () => `${ANSWER}\n\n<<Can a key expire?>><<Who may make a key?>>`
    await open()
    stage.writer.holdAt(8)
    await ask(page)
    await page.locator('.prose', { hasText: 'bound to an' }).waitFor()
    await page.getByRole('button', { name: 'Stop', exact: true }).click()
    await page.getByText('Stopped.').first().waitFor()
    stage.writer.go()
    await page.getByRole('button', { name: 'Try again' }).click()
    await answered(page)
    expect(await question().allTextContents()).toEqual([QUESTION])
    await page.getByRole('button', { name: 'Can a key expire?' }).click()
    await answered(page, 2)
    expect(await question().allTextContents()).toEqual([QUESTION, 'Can a key expire?'])
    await page.getByRole('button', { name: 'New chat' }).click()
    expect(await page.locator('.turn').count()).toBe(0)
    await page.getByText('How can I help?').waitFor()
  })

  test('writes an answer anew, and asks an edited question in the place of the first one', async () => {
    await open()
    await ask(page)
    await answered(page)
    stage.writer.answer = () => 'Another answer.'
    await page.getByRole('button', { name: 'Regenerate' }).click()
    await answers(page).filter({ hasText: 'Another answer.' }).waitFor()
    expect(await page.locator('.turn').count()).toBe(1)
    await ask(page, 'And then?')
    await answered(page, 2)
    // The first answer is still there, and what is asked goes on from the latest one.
    await page.getByText('2/2').waitFor()
    await page.getByRole('button', { name: 'Earlier version' }).click()
    await page.locator('.prose', { hasText: 'bound to an' }).waitFor()
    expect(await page.locator('.turn').count()).toBe(1)
    expect(await page.getByRole('button', { name: 'Earlier version' }).isDisabled()).toBe(true)
    expect(await page.getByRole('button', { name: 'Regenerate' }).count()).toBe(0)
    await page.getByRole('button', { name: 'Later version' }).click()
    await answered(page, 2)
    await page.getByRole('button', { name: 'Earlier version' }).click()
    await page.locator('.prose', { hasText: 'bound to an' }).waitFor()
    await ask(page, 'And after that?')
    await answered(page, 3)
    expect(await answers(page).first().textContent()).toContain('Another answer.')
    await question().first().hover()
    await page.getByRole('button', { name: 'Edit the question' }).first().click()
    await page.getByRole('textbox', { name: 'Your edited question' }).fill('Who may make a key?')
    await page.keyboard.press('Enter')
    await page.locator('.question-text', { hasText: 'Who may make a key?' }).waitFor()
    await answered(page)
    await page.reload()
    await answered(page)
    expect(await question().allTextContents()).toEqual(['Who may make a key?'])
  })

  test('goes on after a reload in the middle of an answer', async () => {
    await open()
    stage.writer.holdAt(8)
    await ask(page)
    await page.locator('.prose', { hasText: 'bound to an' }).waitFor()
    await page.reload()
    await page.locator('.turn[aria-busy="true"] .prose', { hasText: 'bound to an' }).waitFor()
    stage.writer.go()
    const answer = await answered(page)
    expect(await answer.locator('td').count()).toBe(4)
    await page.reload()
    await page.locator('.chip', { hasText: 'API keys' }).waitFor()
    await (await answered(page)).locator('.cite').first().click()
    await page.getByRole('dialog', { name: 'API keys' }).waitFor()
    expect(await question().allTextContents()).toEqual([QUESTION])
    expect(stage.writer.begun).toBeGreaterThan(0)
  })

  test('shows an answer while it is written in a second tab as well', async () => {
    const context = await stage.visitor()
    const [one, two] = [await stage.tab(context), await stage.tab(context)]
    await two.getByRole('button', { name: QUESTION }).waitFor()
    stage.writer.holdAt(8)
    await ask(one)
    for (const tab of [one, two]) {
      await tab.locator('.turn[aria-busy="true"] .prose', { hasText: 'bound to an' }).waitFor()
    }
    stage.writer.go()
    for (const tab of [one, two]) await answered(tab)
    await ask(two, 'And then?')
    await answered(two, 2)
    await answered(one, 2)
  })

  test('waits for a network that is gone, and loses and repeats nothing', async () => {
    await open()
    stage.writer.holdAt(8)
    const before = stage.writer.begun
    await ask(page)
    await page.locator('.prose', { hasText: 'bound to an' }).waitFor()
    stage.line.cut()
    await page.getByText('The connection is lost.').first().waitFor()
    stage.writer.go()
    stage.line.mend()
    const answer = await answered(page)
    expect(await answer.locator('strong').count()).toBe(1)
    expect(await answer.locator('td').count()).toBe(4)
    expect(stage.writer.begun).toBe(before + 1)
    // The browser says itself which requests it could not make.
    const net = stage.faults.filter((fault) => /net::ERR/.test(fault))
    expect(stage.faults.splice(0)).toEqual(net)
  })

  test('asks once where the network goes before the answer begins', async () => {
    await open()
    await page.getByRole('button', { name: QUESTION }).waitFor()
    const before = stage.writer.begun
    stage.line.cut()
    await ask(page)
    await page.getByText('The connection is lost.').first().waitFor()
    stage.line.mend()
    await answered(page)
    expect(stage.writer.begun).toBe(before + 1)
    stage.faults.length = 0
  })

  test('opens, asks and closes by the keyboard alone', async () => {
    await open({ mode: 'bubble' })
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.locator('dialog[open]').waitFor()
    await page.keyboard.type(QUESTION)
    await page.keyboard.press('Enter')
    const answer = await answered(page)
    await answer.locator('.cite').first().waitFor()
    for (let presses = 0; presses < 30; presses += 1) {
      if (
        await page.evaluate(
          `document.querySelector('parley-chat').shadowRoot.activeElement?.className === 'cite'`,
        )
      )
        break
      await page.keyboard.press('Shift+Tab')
    }
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'API keys' }).waitFor()
    await page.keyboard.press('Escape')
    expect(await page.locator('dialog[open]').count()).toBe(1)
    await page.keyboard.press('Escape')
    expect(await page.locator('dialog[open]').count()).toBe(0)
    expect(
      await page.evaluate(
        `document.querySelector('parley-chat').shadowRoot.activeElement.classList.contains('launcher')`,
      ),
    ).toBe(true)
  })

  test('opens over the page with Ctrl+K, and at the side', async () => {
    await open({ mode: 'dialog' })
    await page.keyboard.press('Control+k')
    await page.locator('dialog:modal').waitFor()
    await page.keyboard.press('Control+k')
    expect(await page.locator('dialog[open]').count()).toBe(0)
    await open({ mode: 'panel' })
    await page.getByRole('button', { name: 'Open chat' }).click()
    const box = () => page.locator('dialog[open]').boundingBox()
    await expect
      .poll(async () => Math.round(((await box())?.x ?? 0) + ((await box())?.width ?? 0)))
      .toBe(1000)
    expect((await box())?.height).toBe(760)
  })

  test('is asked and heard by the page', async () => {
    await open()
    await page.evaluate(`{
      window.heard = []
      for (const name of ['parley-question', 'parley-answer', 'parley-error']) {
        document.addEventListener(name, ({ type, detail }) => window.heard.push([type, detail]))
      }
    }`)
    await page.evaluate(`document.querySelector('parley-chat').ask('${QUESTION}')`)
    await answered(page)
    expect(await page.evaluate('window.heard')).toEqual([
      ['parley-question', { question: QUESTION }],
      [
        'parley-answer',
        expect.objectContaining({ turn: 1, answer: expect.not.stringContaining('keys.txt') }),
      ],
    ])
    expect(await page.evaluate(`document.querySelector('parley-chat').conversation`)).toMatch(
      /^[0-9a-f-]{36}$/,
    )
  })

  test('says so where its key is refused', async () => {
    await open({ key: 'wrong' })
    await page.getByText('This chat is not available here.').waitFor()
    expect(stage.faults.splice(0).every((fault) => fault.includes('401'))).toBe(true)
  })

  test('has room for its conversation on a phone, in the mode of a page, and its history behind a button', async () => {
    const phone = { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }
    page = await stage.tab(await stage.visitor(phone), { mode: 'page' })
    await ask(page)
    await answered(page)
    const field = await page.getByRole('textbox', { name: 'Ask a question' }).boundingBox()
    expect(field!.y + field!.height).toBeLessThan(phone.viewport.height + 80)
    const box = (await page.locator('.box').boundingBox())!
    expect(field!.y + field!.height).toBeLessThan(box.y + box.height)
    await page.getByRole('button', { name: 'History' }).click()
    await page.locator('.history-open').first().click()
    await page.locator('.history').waitFor({ state: 'hidden' })
    await answered(page)
  })

  test('lists the conversations of this visitor alone, opens and deletes them', async () => {
    await open({ mode: 'page' })
    await ask(page)
    await answered(page)
    const items = page.locator('.history-open')
    await items.filter({ hasText: QUESTION }).waitFor()
    await page.locator('.history-new').click()
    await items.first().click()
    await answered(page)
    const other = await stage.tab(await stage.visitor(), { mode: 'page' })
    await other.getByText('No conversations yet.').waitFor()
    const remove = page.getByRole('button', { name: `Delete conversation: ${QUESTION}` })
    await remove.click()
    await page.getByRole('button', { name: 'Delete for good?' }).click()
    await expect.poll(() => items.count()).toBe(0)
    await page.getByText('How can I help?').waitFor()
    await page.reload()
    await page.getByText('No conversations yet.').waitFor()
  })
})
