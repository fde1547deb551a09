/** The states of the console and of the widget that are worth looking at. Each function takes a picture of each. */

/** @typedef {import('playwright-core').Page} Page */
/** @typedef {(address: string) => Promise<Page>} Open */

/** What each list of the server says when it is empty. @type {Record<string, unknown>} */
const NOTHING = {
  '/collections': [],
  '/conversations/models': [],
  '/assistants': { assistants: [] },
  '/keys': { keys: [] },
  '/conversations': { conversations: [] },
  '/usage': { usage: [] },
}

const LISTS = [
  '',
  'collections',
  'conversations',
  'conversations/unanswered',
  'sets',
  'assistants',
  'models',
  'keys',
  'usage',
]

const PAGES = [
  '',
  'collections',
  'collections/docs?q=history',
  'collections/docs/documents',
  'collections/docs/schema',
  'import',
  'conversations',
  'conversations/unanswered',
  'assistants/guide',
  'models?new=1',
  'keys',
  'usage',
  'start',
  'nowhere',
]

/** @param {Page} page */
async function shoot(page) {
  await page.locator('.loading').first().waitFor({ state: 'detached' })
  await page.waitForTimeout(700)
  await page.evaluate(
    'Promise.all(document.getAnimations().filter(({ effect }) => effect.getTiming().iterations !== Infinity).map(({ finished }) => finished.catch(() => {})))',
  )
  await page.waitForTimeout(200)
  return page.screenshot()
}

/** @param {Page} page @param {string[]} addresses */
async function each(page, addresses) {
  const shots = []
  for (const address of addresses) {
    await page.evaluate(`location.hash = '#/${address}'`)
    await page.reload()
    shots.push(await shoot(page))
  }
  return shots
}

/** Each page of the console, and its chat with an answer. @param {Open} open */
export async function pageStates(open) {
  const page = await open('/?assistant=guide')
  await page.locator('.suggestion').first().click()
  await page.locator('.turn[aria-busy="false"]:has(.tools:not([hidden]))').first().waitFor()
  const shots = [await shoot(page)]
  await page.locator('.cite').first().click()
  shots.push(await shoot(page))
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Settings' }).click()
  shots.push(await shoot(page))
  await page.keyboard.press('Escape')
  shots.push(...(await each(page, PAGES)))
  await page.context().close()
  return shots
}

const QUESTIONS = [
  { question: 'How do I start Parley?', relevant: ['how-do-i-start-parley'], answer: 'With `npm start`.' },
  {
    question: 'How long is a conversation kept?',
    relevant: ['how-long-is-history-kept'],
    answer: 'As long as its model has `ttl`.',
  },
  { question: 'What is the boiling point of zinc?', unanswerable: true },
]

/** A question set, two runs of it, and what they came to. @param {Open} open */
export async function setStates(open) {
  const page = await open('/#/sets?new=1')
  await page.getByLabel('Name', { exact: true }).fill('Before a release')
  await page
    .getByRole('textbox', { name: 'Questions' })
    .fill(QUESTIONS.map((each) => JSON.stringify(each)).join('\n'))
  const shots = [await shoot(page)]
  await page.getByRole('button', { name: 'Save' }).click()
  const ask = page.getByRole('button', { name: `Ask ${QUESTIONS.length} questions` })
  for (const rows of [1, 2]) {
    if (rows === 2) await page.getByLabel('Documents per search').fill('1')
    await ask.click()
    await page
      .locator('tbody tr')
      .nth(rows - 1)
      .waitFor()
    await ask.waitFor()
  }
  shots.push(await shoot(page))
  await page.locator('tbody').scrollIntoViewIfNeeded()
  for (const box of await page.locator('tbody input').all()) await box.check()
  shots.push(await shoot(page))
  const set = page.url()
  await page.locator('tbody a').last().click()
  await page.locator('.outcomes').waitFor()
  shots.push(await shoot(page))
  await page.goto(set)
  // `all` waits for nothing, and the runs are read after the page is there.
  await page.locator('tbody tr').nth(1).waitFor()
  for (const box of await page.locator('tbody input').all()) await box.check()
  await page.getByRole('link', { name: 'Compare the two' }).click()
  await page.getByLabel('Only what changed').uncheck()
  shots.push(await shoot(page))
  await page.locator('.outcomes > li').nth(1).scrollIntoViewIfNeeded()
  shots.push(await shoot(page))
  await page.getByRole('link', { name: 'Why these answers?' }).first().click()
  await page.locator('.answer-side .waterfall').nth(1).waitFor()
  shots.push(await shoot(page))
  await page.context().close()
  return shots
}

/** @param {Open} open */
export async function emptyStates(open) {
  const page = await open('/')
  await page.route(
    ({ pathname }) => pathname in NOTHING,
    (route) => route.fulfill({ json: NOTHING[new URL(route.request().url()).pathname] }),
  )
  const shots = await each(page, LISTS)
  await page.context().close()
  return shots
}

/** @param {Open} open */
export async function failedStates(open) {
  const page = await open('/')
  await page.route(
    ({ pathname }) => pathname in NOTHING,
    (route) => route.fulfill({ status: 500, json: { message: 'The database does not answer' } }),
  )
  const shots = await each(page, LISTS)
  await page.context().close()
  return shots
}

/** The widget's five modes, before and after an answer. @param {Open} open @param {string} url @param {string} key */
export async function widgetStates(open, url, key) {
  const shots = []
  for (const mode of ['inline', 'bubble', 'panel', 'dialog', 'page']) {
    const page = await open('/docs/')
    await page.route('**/a-page', (route) =>
      route.fulfill({
        contentType: 'text/html',
        body: `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width">
<title>A page</title><style>html { color-scheme: light dark; font-family: system-ui } body { margin: 0; padding: ${mode === 'page' ? 0 : '16px'} }</style>
<script type="module" src="${url}/widget/parley-chat.js"></script>
${mode === 'page' ? '' : '<h1>A page</h1><p>The widget is part of it.</p>'}
<parley-chat assistant="guide" key="${key}" mode="${mode}"></parley-chat>`,
      }),
    )
    await page.goto(`${url}/a-page`)
    await page.waitForFunction("customElements.get('parley-chat')")
    await page.evaluate("document.querySelector('parley-chat').show()")
    await page.locator('.suggestion').first().waitFor()
    shots.push(await shoot(page))
    await page.locator('.suggestion').first().click()
    await page.locator('.turn[aria-busy="false"]:has(.tools:not([hidden]))').first().waitFor()
    if (mode === 'inline') {
      // The end of an answer draws its citations anew.
      await page.waitForTimeout(1_000)
      await page.locator('.cite').first().click()
      await page.locator('.card:not([hidden])').waitFor()
    }
    shots.push(await shoot(page))
    await page.context().close()
  }
  return shots
}
