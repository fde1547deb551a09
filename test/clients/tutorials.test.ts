/** The tutorials of docs/tutorials/, followed to the letter, and the page that one of them makes, in a real browser. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, inject, test } from 'vitest'
import { CHROMIUM, launch } from '../browser/chromium'
import { freePort, type Started, start } from './global-setup'
import { GuideReader, ROOT } from './guide-reader'
import { KEY, request } from './harness'

let data = ''
let parley: Started
let url = ''
let reader: GuideReader

beforeAll(async () => {
  data = mkdtempSync(join(tmpdir(), 'parley-tutorials-'))
  const port = await freePort()
  url = `http://localhost:${port}`
  parley = await start('--port', String(port), '--persist-to', data, '--no-sample')
})
afterAll(async () => {
  await parley?.stop()
  rmSync(data, { recursive: true, force: true })
})

beforeEach(() => {
  reader = new GuideReader(url)
})
afterEach(() => reader.close())

test('every tutorial is followed here', () => {
  expect(readdirSync(join(ROOT, 'docs/tutorials')).sort()).toEqual([
    'deploying.md',
    'five-minutes.md',
    'from-opensearch.md',
    'from-typesense.md',
    'on-your-site.md',
    'tuning.md',
  ])
})

test('"Ask your documents in five minutes" prints what it says', async () => {
  expect(await reader.follow('tutorials/five-minutes.md')).toEqual({ commands: 4, shown: 7 })
}, 120_000)

test('"Put a chat on your site" makes a page with a chat that answers', async () => {
  const port = String(await freePort())
  const followed = await reader.follow('tutorials/on-your-site.md', { '8000': port })
  expect(followed).toEqual({ commands: 3, shown: 4 })
  if (!CHROMIUM) return
  const browser = await launch()
  try {
    const page = await browser.newPage()
    const faults: string[] = []
    page.on('pageerror', (error) => faults.push(String(error)))
    await expect
      .poll(() => fetch(`http://localhost:${port}`).catch(() => undefined), { timeout: 30_000 })
      .toBeTruthy()
    await page.goto(`http://localhost:${port}/`)
    await page.getByRole('button', { name: 'Open chat' }).click()
    await page.getByRole('textbox').fill('How long do I have to send something back?')
    await page.keyboard.press('Enter')
    await page.locator('.turn', { hasText: 'within thirty days' }).waitFor()
    expect(faults).toEqual([])
  } finally {
    await browser.close()
  }
}, 120_000)

test('"Move from Typesense" moves a collection from a server of that protocol', async () => {
  const fields = [
    { name: 'title', type: 'string' },
    { name: 'summary', type: 'string' },
    { name: 'year', type: 'int32', facet: true },
  ]
  await request('DELETE', '/collections/library')
  await request('POST', '/collections', { name: 'library', fields, default_sorting_field: 'year' })
  for (const document of [
    {
      id: '1',
      title: 'The reef',
      summary: 'Divers film corals and sharks off Belize for five years.',
      year: 2023,
    },
    { id: '2', title: 'Slow boats', summary: 'A canal boat crosses France in ninety days.', year: 2019 },
    {
      id: '3',
      title: 'Quiet kitchen',
      summary: 'Two sisters inherit an inn and cook from old recipes.',
      year: 2021,
    },
  ])
    expect((await request('POST', '/collections/library/documents', document)).status).toBe(201)
  await request('PUT', '/synonym_sets/words', { items: [{ id: 'boat', synonyms: ['boat', 'ship'] }] })
  await request('PUT', '/collections/library/synonyms/shark', { root: 'shark', synonyms: ['sharks'] })
  const override = { rule: { query: 'inn', match: 'exact' }, includes: [{ id: '3', position: 1 }] }
  await request('PUT', '/collections/library/overrides/inn', override)
  const names = { 'http://typesense.example:8108': inject('url'), '=secret': `=${KEY}` }
  expect(await reader.follow('tutorials/from-typesense.md', names)).toEqual({ commands: 21, shown: 10 })
  const headers = { 'x-typesense-api-key': KEY }
  const found = async (q: string) => {
    const path = `${url}/collections/library/documents/search?q=${q}&query_by=title,summary`
    const { hits } = (await (await fetch(path, { headers })).json()) as {
      hits: { document: { id: string } }[]
    }
    return hits.map(({ document }) => document.id)
  }
  expect(await found('ship')).toContain('2')
  expect(await found('shark')).toContain('1')
  expect((await found('inn'))[0]).toBe('3')
}, 120_000)

test('"Move from OpenSearch" moves an index from a server of that protocol', async () => {
  const mappings = {
    properties: { title: { type: 'text' }, text: { type: 'text' }, country: { type: 'keyword' } },
  }
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
  const old = inject('url')
  await fetch(`${old}/atlas`, { method: 'DELETE', headers })
  await fetch(`${old}/atlas`, { method: 'PUT', headers, body: JSON.stringify({ mappings }) })
  for (const [id, title, text, country] of [
    ['1', 'Porto', 'Porto lies at the mouth of the Douro and is known for its wine cellars.', 'Portugal'],
    [
      '2',
      'Bergen',
      'Bergen is surrounded by seven mountains. A funicular climbs the one called Fløyen.',
      'Norway',
    ],
  ]) {
    const body = JSON.stringify({ title, text, country })
    expect((await fetch(`${old}/atlas/_doc/${id}`, { method: 'PUT', headers, body })).status).toBe(201)
  }
  const names = { 'http://opensearch.example:9200': old, 'admin:secret': `admin:${KEY}` }
  expect(await reader.follow('tutorials/from-opensearch.md', names)).toEqual({ commands: 7, shown: 5 })
}, 120_000)

test('"Deploy to Cloudflare" shows the plan that is printed', async () => {
  // What needs an account is run against a counterpart of Cloudflare's API, in deploy.test.ts.
  const left = ['npx wrangler login', 'export PARLEY_URL']
  expect(await reader.follow('tutorials/deploying.md', {}, left)).toEqual({ commands: 1, shown: 5 })
}, 120_000)

test('"Tune the answers" measures what it says, before and after', async () => {
  expect(await reader.follow('tutorials/tuning.md')).toEqual({ commands: 4, shown: 11 })
}, 120_000)
