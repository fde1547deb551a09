/** Journeys through the console, with nothing faked: ask and follow, mend an answer, import and search, a new assistant on a page. */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { loadSample } from '../../scripts/sample.mjs'
import { createModel, KEY, request, unique, url } from '../clients/harness'
import { startLlm } from '../clients/llm'
import { book, handbookDocx, onePagePdf, slides, workbook } from '../scripts/parley/files'
import { serve } from '../serve'
import { CHROMIUM } from './chromium'
import { ConsoleStage, expectSound } from './console-stage'

const QUESTION = 'How does Parley store history?'
const CLI = join(import.meta.dirname, '../../scripts/parley/cli.mjs')
const run = promisify(execFile)

describe.runIf(CHROMIUM)('with the console somebody', () => {
  let stage: ConsoleStage
  let folder: string

  beforeAll(async () => {
    await loadSample(url, KEY)
    stage = await ConsoleStage.set()
    folder = mkdtempSync(join(tmpdir(), 'parley-folder-'))
    mkdirSync(join(folder, 'guides'))
    mkdirSync(join(folder, 'drafts'))
    const files: Record<string, string | Uint8Array> = {
      'index.md': '---\ntitle: Welcome\ntags: [start]\n---\n# Hello\n\nThis is the **handbook**.',
      'guides/keys.html':
        '<html><head><title>Keys</title></head><body><main><h1>API keys</h1><p>Keep the admin key to yourself.</p></main></body></html>',
      'guides/code.rst': 'Code\n====\n\n.. code-block:: python\n\n   print(1)\n',
      'notes.txt': 'Plain notes about tides.',
      'drafts/secret.md': '# Not this',
      '.hidden.md': '# Nor this',
      '.gitignore': 'drafts\n',
      'broken.pdf': 'no pdf',
      'tides.pdf': onePagePdf('Tides come and go.'),
      'handbook.docx': await handbookDocx(),
      'küche.txt': Buffer.from('Die Küche ist täglich geöffnet.', 'latin1'),
      'slides.odp': 'not read',
      'start.pptx': await slides(),
      'bees.epub': await book(),
    }
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  })
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true })
  })
  beforeEach(() => async () => expect(await stage.reset()).toEqual([]))

  const documentsOf = async (name: string) => {
    const { text } = await request('GET', `/collections/${name}/documents/export?exclude_fields=embedding`)
    const documents = text.split('\n').map((line) => JSON.parse(line))
    return documents
      .map(({ url: _, parley_hash: __, ...rest }) => rest)
      .sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  const importFolder = async (page: Page, into: string) => {
    await page.getByLabel('A folder').setInputFiles(folder)
    await page.getByLabel('Collection').fill(into)
    const button = page.getByRole('button', { name: 'Import', exact: true })
    await page.getByText('The collection is made with').waitFor()
    await button.click()
    await page.getByText(`imported into ${into}`).waitFor()
  }

  test('asks and follows, and sees how each answer comes about, while it does and after', async () => {
    const llm = await startLlm({ latency: 100 })
    try {
      const model = await createModel({ model_name: 'openai/gpt', openai_url: llm.url })
      const page = await stage.tab({}, `?model=${model}`)
      const panel = page.getByRole('complementary', { name: 'Why this answer?' })
      await page.getByLabel('Your question').fill(QUESTION)
      await page.keyboard.press('Enter')
      await panel.getByText('Live').waitFor()
      await panel.locator('.parts li').first().waitFor()
      expect(await panel.getByText('What the model was sent').count()).toBe(0)
      await page.getByText('Answered by').waitFor()
      await panel.getByText('Write the answer').waitFor()
      expect(await panel.getByText('Live').count()).toBe(0)
      expect(await panel.locator('.parts').first().textContent()).toContain(QUESTION)
      await panel.getByText('Write the answer').click()
      await panel.locator('pre').filter({ hasText: QUESTION }).first().waitFor()
      // What was said before is part of the next search.
      await page.getByLabel('Your question').fill('How long is it kept?')
      await page.keyboard.press('Enter')
      await panel.locator('.rewritten').waitFor()
      await panel.getByText('Rewrite the question').waitFor()
      const bars = await panel.locator('.waterfall li').allTextContents()
      expect(bars.join()).toMatch(/Rewriting.*Search docs.*Generating.*Total/)
      // The first answer is looked at again, and the panel closed.
      await page.getByRole('button', { name: 'Why this answer?' }).first().click()
      await panel.locator('.asked-question', { hasText: QUESTION }).waitFor()
      await page.getByRole('button', { name: 'Why this answer?' }).first().click()
      await panel.waitFor({ state: 'detached' })
    } finally {
      await llm.stop()
    }
  })

  test('mends an answer, sees it right and keeps the question, without leaving the page', async () => {
    const name = unique('mended')
    await request('POST', '/collections', {
      name,
      fields: [
        { name: 'heading', type: 'string' },
        { name: 'text', type: 'string' },
        {
          name: 'embedding',
          type: 'float[]',
          embed: { from: ['heading', 'text'], model_config: { model_name: 'ts/all-MiniLM-L12-v2' } },
        },
      ],
    })
    await request('POST', `/collections/${name}/documents`, { heading: 'Tides', text: 'Tides come and go.' })
    const model = await createModel({ model_name: 'local/extractive' })
    const question = 'Who keeps the lighthouse of Arkona?'
    const page = await stage.tab({}, `?collection=${name}&model=${model}`)
    await page.getByLabel('Your question').fill(question)
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'Fix this answer' }).click()
    await page.locator('.step .badge', { hasText: 'declined' }).first().waitFor()
    await page.getByRole('button', { name: 'Write', exact: true }).click()
    await page.getByLabel('text').fill('Ferdinand Huber keeps the lighthouse of Arkona.')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText(`Wrote “${question}” into ${name}.`).waitFor()
    await page.getByRole('button', { name: 'Ask again' }).click()
    await page.getByRole('region', { name: 'The answer now' }).getByText('Ferdinand Huber').waitFor()
    await page.getByRole('region', { name: 'The answer before' }).getByText('declined').waitFor()
    await page.getByRole('button', { name: 'This should have answered' }).first().click()
    await page.getByLabel('Question set').fill(name)
    await page.getByLabel('Words that a right answer says').fill('Ferdinand Huber')
    await page.getByRole('button', { name: 'Keep in a question set' }).click()
    await page.getByRole('link', { name }).click()
    await page.locator('.set-questions li', { hasText: question }).getByText('Ferdinand Huber').waitFor()
    // The test does not count as a visitor's question, and the page that was written comes nearest now.
    await page.goto(`${url}/#/conversations/unanswered`)
    const group = page.locator('.item', { hasText: question })
    await group.getByText('1 time', { exact: true }).waitFor()
    await group.getByText('Nearest document:').waitFor()
  })

  test('imports a folder as the command line does, and searches it', { timeout: 60_000 }, async () => {
    const byPage = unique('page')
    const byCommand = unique('command')
    const page = await stage.tab({}, '#/import')
    await importFolder(page, byPage)
    for (const name of ['broken.pdf', 'slides.odp']) {
      expect(await page.locator('.faults').textContent()).toContain(name)
    }
    await run(
      process.execPath,
      [CLI, 'import', folder, '--into', byCommand, '--url', url, '--no-assistant'],
      {
        cwd: tmpdir(),
      },
    ).catch(({ code }) => expect(code).toBe(6))
    const documents = await documentsOf(byPage)
    expect(documents.map(({ id }) => id)).toEqual(
      [
        'bees.epub',
        'guides/code.rst',
        'guides/keys.html',
        'handbook.docx',
        'index.md',
        'küche.txt',
        'notes.txt',
        'start.pptx',
        'tides.pdf',
      ].map((name) => `${basename(folder)}/${name}`),
    )
    const texts = JSON.stringify(documents)
    for (const said of ['Tides come and go.', '28 days', 'täglich geöffnet', 'badge', '30 kg'])
      expect(texts).toContain(said)
    expect(documents).toEqual(await documentsOf(byCommand))
    const fieldsOf = async (name: string) => (await request('GET', `/collections/${name}`)).body.fields
    expect(await fieldsOf(byPage)).toEqual(await fieldsOf(byCommand))
    // The same folder once more: nothing has changed.
    await page.getByRole('button', { name: 'Import more' }).click()
    await page.getByLabel('A folder').setInputFiles(folder)
    await page.getByLabel('Collection').fill(byPage)
    await page.getByText('there is nothing to import').waitFor()
    expect(await page.getByRole('button', { name: 'Import', exact: true }).isDisabled()).toBe(true)
    // What was imported is found, by words and by meaning.
    await page.goto(`${url}/#/collections/${byPage}`)
    await page.getByRole('searchbox', { name: `Search ${byPage}` }).fill('tides')
    await page.locator('.result mark', { hasText: 'Tides' }).first().waitFor()
    await page.getByText('words and meaning', { exact: true }).waitFor()
    await page.locator('.result-title').first().click()
    await page.getByRole('dialog').getByText('"id":').waitFor()
    // A spreadsheet is rows, and no page: it goes into a collection of its own.
    const byRows = unique('prices')
    const sheet = await workbook({
      Prices: [
        ['Article', 'Price'],
        ['Tent', 249.9],
        ['Rope', 30],
      ],
    })
    await page.goto(`${url}/#/import?into=${byRows}`)
    const mimeType = 'application/octet-stream'
    await page
      .getByLabel('Files')
      .setInputFiles({ name: 'prices.xlsx', mimeType, buffer: Buffer.from(sheet) })
    await page.getByRole('button', { name: 'Import', exact: true }).click()
    await page.getByText('2 documents imported').waitFor()
    expect((await documentsOf(byRows)).map(({ Article, Price }) => [Article, Price])).toEqual([
      ['Tent', 249.9],
      ['Rope', 30],
    ])
  })

  test('makes an assistant, tries it, and puts it on a page', async () => {
    const name = unique('guide')
    const page = await stage.tab({}, '#/assistants/new')
    await page.getByLabel('Name', { exact: true }).fill(name)
    await page.getByLabel('docs', { exact: true }).check()
    await page.getByLabel('Model', { exact: true }).selectOption('docs')
    await page.getByLabel('First questions').fill(QUESTION)
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name, level: 1 }).waitFor()
    await page.locator('parley-chat').getByRole('button', { name: QUESTION }).click()
    await page.locator('parley-chat .prose').getByText('two documents').waitFor()
    await page.getByRole('link', { name: 'Keys', exact: true }).click()
    await page.getByRole('link', { name: 'New key' }).first().click()
    await page.getByLabel('Assistant', { exact: true }).selectOption(name)
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.locator('.secret code').first().waitFor()
    const [value = '', snippet] = await page.locator('.secret code').allTextContents()
    // The key asks its assistant, and may do nothing else.
    expect((await request('GET', `/a/${name}`, undefined, value)).status).toBe(200)
    expect((await request('GET', '/collections', undefined, value)).status).toBe(401)
    const site = await serve((_, response) => {
      response.setHeader('content-type', 'text/html')
      response.end(
        `<!doctype html><title>A shop</title><link rel="icon" href="data:,"><h1>A shop</h1>${snippet}`,
      )
    })
    try {
      await page.goto(site.url)
      await page.locator('parley-chat').getByRole('button', { name: QUESTION }).click()
      await page.locator('parley-chat .prose').getByText('two documents').waitFor()
    } finally {
      await site.stop()
    }
  })

  test('names a website, and has a chat in its name and colour on it', { timeout: 90_000 }, async () => {
    const head =
      '<meta property="og:site_name" content="The mill"><meta name="theme-color" content="#8a3b12">'
    const rooms = Array.from({ length: 25 }, (_, room) => `/rooms/${room}`)
    const links = ['/closed', ...rooms].map((path) => `<a href="${path}">${path}</a>`).join(' ')
    let snippet = ''
    const site = await serve(({ url: path = '' }, response) => {
      const room = rooms.indexOf(path)
      if (path !== '/' && room < 0) return void response.writeHead(path === '/closed' ? 403 : 404).end()
      const main = room < 0 ? '<h1>The mill</h1>' : `<h1>Room ${room}</h1>`
      const said = `In room ${room} stands clock number ${room + 1} of the museum, which rings at noon and at midnight.`
      response.setHeader('content-type', 'text/html')
      response.end(
        `<!doctype html><html lang="en"><head><title>The mill</title><link rel="icon" href="data:,">${head}</head>
        <body><nav>${links}</nav><main>${main}<p>${room < 0 ? 'A museum of clocks in a mill by the river, with 25 rooms.' : said}</p></main>${snippet}</body></html>`,
      )
    })
    try {
      const page = await stage.tab({}, '#/start')
      await page.getByLabel('The address of your website').waitFor({ state: 'attached' })
      const another = page.getByText('Another website, or files')
      if (await another.isVisible()) await another.click()
      await page.getByLabel('The address of your website').fill(site.url.replace('http://', ''))
      await page.getByRole('button', { name: 'Read the website' }).click()
      await page.locator('.titles').getByText('Room 3', { exact: true }).waitFor()
      // Whoever leaves in the middle finds it going on.
      await page.reload()
      await page.getByText(/20 pages read\. \d+ more are known and follow in the background/).waitFor()
      await page.getByText('answered with 403').waitFor()
      const chat = page.locator('.picture parley-chat')
      await chat.getByRole('button', { name: 'Room 0' }).waitFor()
      await chat.locator('textarea').fill('Which clock stands in room 3?')
      await page.keyboard.press('Enter')
      await chat.locator('.prose').getByText('clock number 4').first().waitFor()
      await page.getByRole('link', { name: 'See its sources, and why it is what it is' }).waitFor()
      await expectSound(page, 'a website, light')
      await page.emulateMedia({ colorScheme: 'dark' })
      await page.setViewportSize({ width: 390, height: 844 })
      await expectSound(page, 'a website, dark, on a phone')
      snippet = (await page.locator('.secret code').textContent()) ?? ''
      expect(snippet).toContain('heading="The mill" style="--parley-accent: #8a3b12"')
      await page.goto(site.url)
      await page.getByRole('button', { name: 'Open chat' }).click()
      await page.locator('parley-chat').getByRole('button', { name: 'Room 1' }).click()
      await page.locator('parley-chat .prose').getByText('clock number').first().waitFor()
    } finally {
      await site.stop()
      const name = new URL(site.url).host.replace(/[^\w.-]+/g, '-')
      await request('DELETE', `/sources/${name}`)
    }
  })
})
