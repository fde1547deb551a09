/**
 * `npm run pictures`: takes the pictures in docs/images anew. It starts a Parley of its own and a language model that writes
 * prepared answers, and needs Chromium. Look at what it took before you commit it.
 */
import './installed.mjs'
import { existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'
import sharp from 'sharp'
import { client } from './client.mjs'
import { startOwnServer } from './own-server.mjs'
import { record } from './pictures/recording.mjs'
import { emptyStates, failedStates, pageStates, setStates, widgetStates } from './pictures/states.mjs'
import { ANSWERS, startWriter } from './pictures/writer.mjs'

const IMAGES = fileURLToPath(new URL('../docs/images/', import.meta.url))
const QUESTION = ANSWERS[0]?.question ?? ''

/** @typedef {import('playwright-core').Page} Page */

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
  const fields = ['conversation_id', 'model_id', 'role', 'message'].map((name) => ({ name, type: 'string' }))
  await call('POST', '/collections', {
    name: 'talk',
    fields: [...fields, { name: 'timestamp', type: 'int32' }],
  })
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
  const { value: key } = await call('POST', '/keys', {
    description: 'pictures',
    actions: ['documents:search'],
    collections: ['*'],
    limits: { assistant: 'guide' },
  })
  await recording()
  await screenshots()
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
      await sheet(`widget-${size}-${colorScheme}`, await widgetStates(open, server.url, key), at)
    }
    await sheet(`console-${size}-empty`, await emptyStates((address) => tab(options, address)), at)
    await sheet(`console-${size}-failed`, await failedStates((address) => tab(options, address)), at)
  }
} finally {
  await browser.close()
  writer.stop()
  await server.stop()
}
