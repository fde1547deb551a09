/** Collections in the console: import, search, documents, schema. */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { loadSample } from '../../scripts/sample.mjs'
import { KEY, request, unique, url } from '../clients/harness'
import { book, handbookDocx, onePagePdf, slides, workbook } from '../scripts/parley/files'
import { serve } from '../serve'
import { CHROMIUM } from './chromium'
import { ConsoleStage, expectSound, LOOKS } from './console-stage'

const CLI = join(import.meta.dirname, '../../scripts/parley/cli.mjs')
const run = promisify(execFile)

describe.runIf(CHROMIUM)('collections in the console', () => {
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

  test('are filled by the page as by the command line', { timeout: 60_000 }, async () => {
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
  })

  test('take rows, and tell which of them the server refuses', async () => {
    const name = unique('rows')
    const fields = [{ name: 'n', type: 'int32' }]
    await request('POST', '/collections', { name, fields })
    const page = await stage.tab({}, `#/import?into=${name}`)
    const rows = '{"id":"a","n":1}\n{"id":"b","n":"none"}\n{"id":"c","n":3}\n'
    await page
      .getByLabel('Files')
      .setInputFiles({ name: 'rows.jsonl', mimeType: 'application/json', buffer: Buffer.from(rows) })
    await page.getByRole('button', { name: 'Import', exact: true }).click()
    await page.getByText('2 documents imported').waitFor()
    expect(await page.locator('.faults li').allTextContents()).toEqual([expect.stringMatching(/^b.*`n`/)])
    expect((await request('GET', `/collections/${name}`)).body.num_documents).toBe(2)
  })

  test('take the rows of a spreadsheet', async () => {
    const name = unique('prices')
    const page = await stage.tab({}, `#/import?into=${name}`)
    const sheet = await workbook({
      Prices: [
        ['Article', 'Price'],
        ['Tent', 249.9],
        ['Rope', 30],
      ],
    })
    await page.getByLabel('Files').setInputFiles({
      name: 'prices.xlsx',
      mimeType: 'application/octet-stream',
      buffer: Buffer.from(sheet),
    })
    await page.getByRole('button', { name: 'Import', exact: true }).click()
    await page.getByText('2 documents imported').waitFor()
    expect((await documentsOf(name)).map(({ Article, Price }) => [Article, Price])).toEqual([
      ['Tent', 249.9],
      ['Rope', 30],
    ])
  })

  test('say where they live, and what cannot be done there', async () => {
    const [linked, there] = [unique('linked'), unique('there')]
    await request('POST', '/collections', { name: there, fields: [{ name: 'title', type: 'string' }] })
    const engine = { type: 'typesense', nodes: [url], credentials: { api_key: KEY }, collection: there }
    await request('POST', '/collections', { name: linked, engine })
    const page = await stage.tab({}, `#/collections/${linked}`)
    await page.getByText('Lives in Typesense as').waitFor()
    expect(await page.locator('main').textContent()).toContain(there)
    expect(await page.getByRole('link', { name: 'Import files' }).count()).toBe(1)
    const service = await serve((asked, reply) => {
      asked.resume()
      reply.setHeader('content-type', 'application/json')
      reply.end('{"success":true,"result":{"completed":3}}')
    })
    try {
      const searched = unique('searched')
      await request('POST', '/collections', {
        name: searched,
        engine: {
          type: 'ai-search',
          nodes: [service.url],
          credentials: { api_token: 't' },
          account_id: 'a',
          instance: 'i',
        },
      })
      const other = await stage.tab({}, `#/collections/${searched}`)
      await other.getByText('Lives in AI Search as').waitFor()
      expect(await other.getByRole('link', { name: 'Import files' }).count()).toBe(0)
    } finally {
      await service.stop()
    }
  })

  test('say what cannot be read, and take a drop', async () => {
    const page = await stage.tab({}, '#/import')
    await page
      .getByLabel('Files')
      .setInputFiles({ name: 'photo.png', mimeType: 'image/png', buffer: Buffer.from('x') })
    await page.getByRole('alert').getByText('photo.png cannot be read').waitFor()
    await drag(page, 'drop')
    await page.getByText('1 document').waitFor()
    expect(await page.getByLabel('Collection').inputValue()).toBe('dropped')
    await page.getByLabel('The first documents').getByText('dropped.md').waitFor()
  })

  test('keep several files when several others are imported', async () => {
    const name = unique('several')
    const page = await stage.tab({}, '#/import')
    const files = (names: string[]) =>
      names.map((each) => ({ name: each, mimeType: 'text/markdown', buffer: Buffer.from(`# ${each}`) }))
    for (const names of [
      ['a.md', 'b.md'],
      ['c.md', 'd.md'],
    ]) {
      await page.getByLabel('Files').setInputFiles(files(names))
      await page.getByLabel('Collection').fill(name)
      await page
        .getByLabel('The first documents')
        .getByText(names[0] ?? '')
        .first()
        .waitFor()
      if (names[0] === 'c.md') await page.getByText('2 new, 0 changed, 0 unchanged, 0 gone').waitFor()
      await page.getByRole('button', { name: 'Import', exact: true }).click()
      await page.getByText(`imported into ${name}`).waitFor()
      await page.getByRole('button', { name: 'Import more' }).click()
    }
    expect((await documentsOf(name)).map(({ id }) => id)).toEqual(['a.md', 'b.md', 'c.md', 'd.md'])
  })

  /** Drags a file over the page, or drops it there. */
  const drag = (page: Page, event: 'dragover' | 'drop') =>
    page.evaluate(`{
      const dataTransfer = new DataTransfer()
      dataTransfer.items.add(new File(['# Dropped\\n\\nA page.'], 'dropped.md', { type: 'text/markdown' }))
      document.querySelector('main').dispatchEvent(new DragEvent('${event}', { dataTransfer, bubbles: true, cancelable: true }))
    }`)

  test('begin with a file that is dropped on any page, into the collection of that page', async () => {
    const page = await stage.tab()
    await page.getByRole('heading', { name: 'Ask your documents', level: 2 }).waitFor()
    await drag(page, 'dragover')
    await page.getByText('Drop a folder or files to import them').waitFor()
    await drag(page, 'drop')
    await page.getByText('The collection is made with').waitFor()
    expect(await page.getByText('Drop a folder or files to import them').count()).toBe(0)
    expect(await page.getByLabel('Collection').inputValue()).toBe('dropped')
    const name = unique('into')
    await request('POST', '/collections', { name, fields: [{ name: 'title', type: 'string' }] })
    await page.goto(`${url}/#/collections/${name}`)
    await page.getByRole('searchbox', { name: `Search ${name}` }).waitFor()
    await drag(page, 'drop')
    await expect.poll(() => page.getByLabel('Collection').inputValue()).toBe(name)
  })

  test('are searched, filtered by facets, and each hit explained', async () => {
    const page = await stage.tab({}, '#/collections')
    await page.getByRole('link', { name: 'docs', exact: true }).click()
    await page.getByRole('searchbox', { name: 'Search docs' }).fill('history')
    await page.locator('.result mark').first().waitFor()
    expect(await page.locator('.scores').first().textContent()).toMatch(
      /score [\d.]+.*words 100%.*distance [\d.]+/,
    )
    await page.getByRole('button', { name: /^conversations/ }).click()
    await page.getByRole('button', { name: /^conversations/, pressed: true }).waitFor()
    const address = page.url()
    expect(decodeURIComponent(address)).toContain('filter=section')
    // The address says it all.
    const found = await page.getByRole('status').filter({ hasText: 'hits of' }).textContent()
    await page.reload()
    await page
      .getByRole('status')
      .filter({ hasText: found!.split(' in ')[0]! })
      .waitFor()
    // "Back" and links change what stands in the box.
    await page.evaluate("location.hash = '#/collections/docs?q=keys'")
    await expect.poll(() => page.getByRole('searchbox', { name: 'Search docs' }).inputValue()).toBe('keys')
    await page.goBack()
    await expect.poll(() => page.getByRole('searchbox', { name: 'Search docs' }).inputValue()).toBe('history')
    await page.getByLabel('Search by').selectOption('meaning')
    await page.locator('.result').first().waitFor()
    await page.locator('.result-title').first().click()
    await page.getByRole('dialog').getByText('"section": "conversations"').waitFor()
    await page.keyboard.press('Escape')
    await page.getByPlaceholder('Filter, such as year:>2020').fill('nofield:=1')
    await page.getByRole('alert').waitFor()
    expect(stage.faults.splice(0).every((fault) => fault.includes('400') || fault.includes('404'))).toBe(true)
  })

  test('show their documents page by page, and lose one', async () => {
    const name = unique('paged')
    await request('POST', '/collections', { name, fields: [{ name: 'title', type: 'string' }] })
    const lines = Array.from({ length: 30 }, (_, at) => `{"id":"${at}","title":"Number ${at}"}`)
    await request('POST', `/collections/${name}/documents/import`, lines.join('\n'))
    const page = await stage.tab({}, `#/collections/${name}/documents`)
    await page.getByText('Page 1 of 2').waitFor()
    await page.getByRole('button', { name: 'Next' }).click()
    await page.getByText('Page 2 of 2').waitFor()
    await page.locator('.row').first().click()
    await page.getByRole('button', { name: 'Delete the document' }).click()
    await page.getByRole('button', { name: 'Delete for good' }).click()
    await page.getByText('29 documents').waitFor()
    await page.getByRole('link', { name: 'Schema' }).click()
    await page.getByRole('rowheader', { name: 'title' }).waitFor()
    await page.getByRole('link', { name: 'Collections' }).first().click()
    await page.getByRole('button', { name: `Delete the collection ${name}` }).click()
    await page.getByRole('button', { name: 'Delete the collection', exact: true }).click()
    await page.getByRole('link', { name, exact: true }).waitFor({ state: 'detached' })
    expect((await request('GET', `/collections/${name}`)).status).toBe(404)
  })

  for (const { size, colorScheme, options } of LOOKS) {
    test(`have no fault that axe knows, on a ${size}, ${colorScheme}`, async () => {
      const page = await stage.tab(options, '#/collections')
      await page.getByRole('link', { name: 'docs', exact: true }).waitFor()
      await expectSound(page, 'list')
      for (const [state, address, shown] of [
        ['search', '#/collections/docs?q=history', '.result'],
        ['documents', '#/collections/docs/documents', '.row'],
        ['schema', '#/collections/docs/schema', '.table'],
        ['import', '#/import', '.drop'],
      ] as const) {
        await page.goto(`${url}/${address}`)
        await page.locator(shown).first().waitFor()
        await expectSound(page, state)
      }
      await page
        .getByLabel('Files')
        .setInputFiles({ name: 'a.md', mimeType: 'text/markdown', buffer: Buffer.from('# A\n\nText.') })
      await page.getByText('The collection is made with').waitFor()
      await expectSound(page, 'preview')
    })
  }
})
