/**
 * `npm run pictures`: takes the pictures in docs/images anew. It starts a Parley of its own and a language model that writes
 * prepared answers, and needs Chromium. Look at what it took before you commit it.
 */
import './installed.mjs'
import { existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { LLMock } from '@copilotkit/aimock'
import { chromium } from 'playwright-core'
import sharp from 'sharp'
import { client, startOwnServer } from './own-server.mjs'
import { HISTORY } from './parley/commands/init.mjs'

/** Nobody sees more of a chat, and each frame weighs. */
const FRAME_MS = 110
const LAST_MS = 4_000

/**
 * Records a page while something happens in it.
 * @param {import('playwright-core').Page} page
 * @param {() => Promise<void>} act
 * @param {{ width: number }} options pixels of the recording
 * @returns {Promise<Buffer>}
 */
async function record(page, act, { width }) {
  const session = await page.context().newCDPSession(page)
  /** @type {{ data: Buffer, at: number }[]} */
  const frames = []
  session.on('Page.screencastFrame', ({ data, sessionId, metadata }) => {
    const at = (metadata.timestamp ?? 0) * 1000
    const last = frames.at(-1)
    const frame = { data: Buffer.from(data, 'base64'), at }
    if (last && at - last.at < FRAME_MS && frames.length > 1)
      frames[frames.length - 1] = { ...frame, at: last.at }
    else frames.push(frame)
    session.send('Page.screencastFrameAck', { sessionId }).catch(() => {})
  })
  await session.send('Page.startScreencast', { format: 'png', everyNthFrame: 1 })
  await act()
  await session.send('Page.stopScreencast')
  // Chromium can report a frame after a later one.
  frames.sort((one, other) => one.at - other.at)
  const delay = frames.map(({ at }, index) => {
    const next = frames[index + 1]
    return next ? Math.round(next.at - at) : LAST_MS
  })
  const drawn = await Promise.all(frames.map(({ data }) => sharp(data).resize({ width }).png().toBuffer()))
  return sharp(drawn, { join: { animated: true } })
    .webp({ delay, loop: 0, quality: 76, effort: 4, minSize: true, mixed: true })
    .toBuffer()
}

/** @typedef {import('playwright-core').Page} Page */
/** @typedef {(address: string) => Promise<Page>} Open */

/** What each list of the server says when it is empty. @type {Record<string, unknown>} */
const NOTHING = {
  '/collections': [],
  '/conversations/models': [],
  '/assistants': { assistants: [] },
  '/keys': { keys: [] },
  '/conversations': { conversations: [] },
  '/gaps': { turns: 0, gaps: [] },
  '/question_sets': { sets: [] },
  '/sources': { sources: [] },
  '/synonym_sets': [],
  '/tools': { tools: [] },
  '/usage': { usage: [] },
  '/webhooks': { webhooks: [] },
}

const LISTS = [
  '',
  'collections',
  'rules',
  'sources',
  'conversations',
  'conversations/unanswered',
  'sets',
  'assistants',
  'tools',
  'models',
  'keys',
  'webhooks',
  'usage',
]

const PAGES = [
  '',
  'collections',
  'collections/docs?q=history',
  'collections/docs/documents',
  'collections/docs/schema',
  'import',
  'rules',
  'sources',
  'conversations',
  'conversations/unanswered',
  'assistants/guide',
  'tools',
  'models?new=1',
  'keys',
  'webhooks',
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
async function pageStates(open) {
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

const SET = 'Before a release'
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
async function setStates(open) {
  const page = await open('/#/sets?new=1')
  await page.getByLabel('Name', { exact: true }).fill(SET)
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
  // The server keeps it. The next sheet begins without it.
  await call('DELETE', `/question_sets/${encodeURIComponent(SET)}`)
  return shots
}

/**
 * The lists of the console, with replies of the test's own.
 * @param {Open} open
 * @param {(path: string) => { status?: number, json: unknown }} replyTo
 */
async function listStates(open, replyTo) {
  const page = await open('/')
  await page.route(
    ({ pathname }) => pathname in NOTHING,
    (route) => route.fulfill(replyTo(new URL(route.request().url()).pathname)),
  )
  const shots = await each(page, LISTS)
  await page.context().close()
  return shots
}

const empty = (/** @type {string} */ path) => ({ json: NOTHING[path] })
const failed = () => ({ status: 500, json: { message: 'The database does not answer' } })

/**
 * A page with the widget in it, open, and with a question that it suggests.
 * @param {Open} open
 * @param {string} key
 * @param {string} mode
 */
async function widgetPage(open, key, mode) {
  const page = await open('/docs/')
  await page.route('**/a-page', (route) =>
    route.fulfill({
      contentType: 'text/html',
      body: `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width">
<title>A page</title><style>html { color-scheme: light dark; font-family: system-ui } body { margin: 0; padding: ${mode === 'page' ? 0 : '16px'} }</style>
<script type="module" src="${server.url}/widget/parley-chat.js"></script>
${mode === 'page' ? '' : '<h1>A page</h1><p>The widget is part of it.</p>'}
<parley-chat assistant="guide" key="${key}" mode="${mode}"></parley-chat>`,
    }),
  )
  await page.goto(`${server.url}/a-page`)
  await page.waitForFunction("customElements.get('parley-chat')")
  await page.evaluate("document.querySelector('parley-chat').show()")
  await page.locator('.suggestion').first().waitFor()
  return page
}

/** Asks what the widget suggests. @param {Page} page */
async function askSuggested(page) {
  await page.locator('.suggestion').first().click()
  await answered(page)
  // The end of an answer draws its citations anew.
  await page.waitForTimeout(1_000)
}

/** @param {Page} page */
async function openCard(page) {
  await page.locator('.cite').first().click()
  await page.locator('.card:not([hidden])').waitFor()
}

/** The widget's five modes, before and after an answer. @param {Open} open @param {string} key */
async function widgetStates(open, key) {
  const shots = []
  for (const mode of ['inline', 'bubble', 'panel', 'dialog', 'page']) {
    const page = await widgetPage(open, key, mode)
    shots.push(await shoot(page))
    await askSuggested(page)
    if (mode === 'inline') await openCard(page)
    shots.push(await shoot(page))
    await page.context().close()
  }
  return shots
}

/** The widget as its documentation shows it: in a page with a card, and on a phone in the dark. @param {string} key */
async function widgetPictures(key) {
  const wide = await widgetPage((at) => tab({ viewport: { width: 680, height: 960 } }, at), key, 'inline')
  // The whole answer, from its question on.
  await wide.evaluate("document.querySelector('parley-chat').style.setProperty('--parley-height', '800px')")
  await askSuggested(wide)
  await openCard(wide)
  keep('widget.png', await wide.locator('parley-chat').screenshot())
  const options = { viewport: { width: 390, height: 720 }, isMobile: true, hasTouch: true }
  const phone = await widgetPage((at) => tab({ ...options, colorScheme: 'dark' }, at), key, 'bubble')
  await askSuggested(phone)
  await phone.locator('.scroller-y').evaluate((scroller) => scroller.scrollTo(0, 0))
  await phone.waitForTimeout(500)
  keep('widget-phone.png', await phone.screenshot())
}

const GAP_MS = 45

/** What it answers, by the question. `[1]` and `[2]` stand for the first documents of the prompt. */
const ANSWERS = [
  {
    question: 'How do I create a conversation model?',
    next: ['Which language models can answer?', 'How long is history kept?'],
    text: `First create a history collection, then post the model with the name of that collection. [1]

| Property | What it says |
| --- | --- |
| \`model_name\` | who writes, such as \`openai/gpt-4o-mini\` |
| \`history_collection\` | where conversations are kept |
| \`max_bytes\` | how much a prompt may hold |

\`\`\`sh
curl localhost:8108/conversations/models -d @model.json
\`\`\`

You can **ask your own documents** with it at once. [2]`,
  },
]

/** The labels of the documents in a prompt, best first. @param {string} prompt */
const labelsIn = (prompt) =>
  [...prompt.matchAll(/"citation_label": "((?:[^"\\]|\\.)*)"/g)].map(([, label]) => JSON.parse(`"${label}"`))

/** @param {string} prompt */
function answerTo(prompt) {
  const known = ANSWERS.find(({ question }) => prompt.includes(question))
  if (!known) return 'The documents do not answer this question.'
  const labels = labelsIn(prompt)
  const cited = known.text.replace(/\[(\d)\]/g, (_, number) => `[${labels[Number(number) - 1] ?? labels[0]}]`)
  return `${cited}\n\n${known.next.map((question) => `<<${question}>>`).join('\n')}`
}

/** A language model that speaks OpenAI's API, and writes a few letters at a time. */
async function startWriter() {
  const writer = new LLMock({ port: 0, chunkSize: 6, latency: GAP_MS })
  writer.on({ predicate: () => true }, ({ messages }) => ({
    content: answerTo(messages.map(({ content }) => content).join('\n')),
  }))
  await writer.start()
  return writer
}

const IMAGES = fileURLToPath(new URL('../docs/images/', import.meta.url))
const QUESTION = ANSWERS[0]?.question ?? ''

const executablePath = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/google-chrome',
].find((path) => existsSync(path))
if (executablePath === undefined) throw new Error('There is no Chromium (apt-get install chromium).')

const server = await startOwnServer()
const writer = await startWriter()
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })

const call = client(server.url, 'xyz')

/** @param {string} name @param {Uint8Array} bytes */
function keep(name, bytes) {
  writeFileSync(join(IMAGES, name), bytes)
  console.log(`docs/images/${name}  ${(statSync(join(IMAGES, name)).size / 1000).toFixed(0)} KB`)
}

/** A tab, at the address of a page. @param {import('playwright-core').BrowserContextOptions} options */
async function tab(options, address = '/') {
  const page = await (await browser.newContext(options)).newPage()
  page.setDefaultTimeout(60_000)
  await page.goto(server.url + address)
  return page
}

/** @param {Page} page */
const answered = (page) => page.locator('.turn[aria-busy="false"]:has(.tools:not([hidden]))').last().waitFor()

/** Types as a person does. @param {Page} page */
async function ask(page) {
  await page.waitForTimeout(900)
  await page
    .getByRole('textbox', { name: /question/i })
    .first()
    .pressSequentially(QUESTION, { delay: 38 })
  await page.waitForTimeout(400)
  await page.keyboard.press('Enter')
  await answered(page)
}

/** The question of the README, from its first letter to the card of a citation. */
async function recording() {
  const page = await tab({ viewport: { width: 1280, height: 720 } }, '/?assistant=guide')
  await page.locator('.suggestion').first().waitFor()
  const bytes = await record(
    page,
    async () => {
      await ask(page)
      await page.waitForTimeout(1_200)
      await page.locator('.cite').first().click()
      await page.waitForTimeout(1_200)
    },
    { width: 960 },
  )
  keep('answer.webp', bytes)
}

async function screenshots() {
  const page = await tab({ viewport: { width: 1280, height: 800 } }, '/?assistant=guide')
  await page.locator('.suggestion').first().click()
  await answered(page)
  await page.getByRole('heading', { name: 'What the model was sent' }).waitFor()
  await page.waitForTimeout(600)
  keep('console.jpg', await page.screenshot({ type: 'jpeg', quality: 80 }))
}

/**
 * Pictures of many states on one sheet.
 * @param {string} name
 * @param {Buffer[]} shots all of one size
 * @param {{ columns: number, width: number }} options of the sheet, and pixels of each picture
 */
async function sheet(name, shots, { columns, width }) {
  const small = await Promise.all(shots.map((shot) => sharp(shot).resize({ width }).png().toBuffer()))
  const { height = 0 } = await sharp(small[0]).metadata()
  const gap = 12
  const rows = Math.ceil(small.length / columns)
  const bytes = await sharp({
    create: {
      width: gap + columns * (width + gap),
      height: gap + rows * (height + gap),
      channels: 3,
      background: '#c9ccd0',
    },
  })
    .composite(
      small.map((input, at) => ({
        input,
        left: gap + (at % columns) * (width + gap),
        top: gap + Math.floor(at / columns) * (height + gap),
      })),
    )
    .webp({ quality: 66, effort: 6 })
    .toBuffer()
  keep(`states-${name}.webp`, bytes)
}

try {
  await call('POST', '/collections', { name: 'talk', fields: HISTORY })
  await call('POST', '/conversations/models', {
    id: 'writer',
    model_name: 'openai/gpt-4o-mini',
    api_key: 'sk-none',
    openai_url: writer.url,
    history_collection: 'talk',
    max_bytes: 16_384,
  })
  await call('PUT', '/assistants/guide', {
    model: 'writer',
    collections: ['docs'],
    title_field: 'heading',
    followups: true,
    questions: ANSWERS.map(({ question }) => question),
  })
  await call('PUT', '/synonym_sets/clothes', {
    items: [{ id: 'coat', synonyms: ['coat', 'jacket', 'parka'] }],
  })
  await call('PUT', '/tools/cart', {
    title: 'Read the cart',
    description: 'Reads what the visitor has put into the cart.',
    parameters: { type: 'object', properties: {} },
    page: true,
  })
  const { value: key } = await call('POST', '/keys', {
    description: 'pictures',
    actions: ['documents:search'],
    collections: ['*'],
    limits: { assistant: 'guide' },
  })
  await recording()
  await screenshots()
  await widgetPictures(key)
  const desktop = { columns: 3, width: 460 }
  const phone = { columns: 6, width: 220 }
  for (const [size, options, at] of /** @type {const} */ ([
    ['desktop', { viewport: { width: 1280, height: 800 } }, desktop],
    ['phone', { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }, phone],
  ])) {
    for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
      const open = (/** @type {string} */ address) => tab({ ...options, colorScheme }, address)
      await sheet(`console-${size}-${colorScheme}`, await pageStates(open), at)
      await sheet(`sets-${size}-${colorScheme}`, await setStates(open), at)
      await sheet(`widget-${size}-${colorScheme}`, await widgetStates(open, key), at)
    }
    const open = (/** @type {string} */ address) => tab(options, address)
    await sheet(`console-${size}-empty`, await listStates(open, empty), at)
    await sheet(`console-${size}-failed`, await listStates(open, failed), at)
  }
} finally {
  await browser.close()
  await writer.stop()
  await server.stop()
}
