/** What the console shows of a collection: weights, passages, the state of its vectors, and lists in parts. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { loadSample } from '../../scripts/sample.mjs'
import { KEY, request, unique, url } from '../clients/harness'
import { CHROMIUM } from './chromium'
import { ConsoleStage, expectSound, LOOKS, SIZES } from './console-stage'

const POISON = 'unspeakable'

/** An OpenAI-compatible server of embeddings that refuses one word. */
async function startRefuser(): Promise<Server> {
  const server = createServer(async (incoming, reply) => {
    let body = ''
    for await (const chunk of incoming) body += chunk
    const { input } = JSON.parse(body) as { input: string | string[] }
    const texts = [input].flat()
    const isRefused = texts.some((text) => text.includes(POISON))
    const answer = isRefused
      ? { error: { message: 'This text is not taken', type: 'invalid_request_error' } }
      : { object: 'list', data: texts.map((_, index) => ({ index, embedding: [1, 0, 0, 0] })) }
    reply.writeHead(isRefused ? 400 : 200, { 'content-type': 'application/json' })
    reply.end(JSON.stringify(answer))
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  return server
}

const LONG = [
  '# Reefs',
  `Reefs are built by corals. ${'Corals grow slowly and need light. '.repeat(30)}`,
  '## Tides',
  `Tides follow the moon. ${'The moon pulls the sea twice a day. '.repeat(30)}`,
].join('\n\n')

describe.runIf(CHROMIUM)('a collection in the console', () => {
  let stage: ConsoleStage

  beforeAll(async () => {
    await loadSample(url, KEY)
    stage = await ConsoleStage.set()
  })
  beforeEach(() => async () => expect(await stage.reset()).toEqual([]))

  for (const { size, colorScheme, options } of LOOKS) {
    test(`weighs its fields in a search, and says what the numbers mean, on a ${size}, ${colorScheme}`, async () => {
      const name = unique('weighed')
      const fields = ['title', 'text'].map((field) => ({ name: field, type: 'string' }))
      await request('POST', '/collections', { name, fields })
      await request('POST', `/collections/${name}/documents`, {
        id: 'a',
        title: 'Tides',
        text: 'Of the sea',
      })
      await request('POST', `/collections/${name}/documents`, {
        id: 'b',
        title: 'Of the sea',
        text: 'Tides',
      })
      const page = await stage.tab(options, `#/collections/${name}?q=tides`)
      const first = page.locator('.result-title').first()
      await page.locator('.result').nth(1).waitFor()
      await page.getByText('Weights', { exact: true }).click()
      await page.getByLabel('text', { exact: true }).fill('9')
      await expect.poll(() => first.textContent()).toBe('Of the sea')
      expect(decodeURIComponent(page.url())).toContain('weights=text:9')
      await page.getByLabel('title', { exact: true }).fill('9')
      await page.getByLabel('text', { exact: true }).fill('0')
      await page.getByText('1 hit of 2').waitFor()
      expect(await first.textContent()).toBe('Tides')
      expect(await page.locator('.scores').first().textContent()).toContain('1 word matched in title')
      await page.getByText('What do the numbers say?').click()
      await page.getByText('as a share of the first hit').waitFor()
      await expectSound(page, 'weights')
      // The address says it all.
      await page.reload()
      await page.getByText('1 hit of 2').waitFor()
      expect(await page.getByLabel('title', { exact: true }).inputValue()).toBe('9')
      await page.getByRole('button', { name: 'Reset the weights' }).click()
      await page.getByText('2 hits of 2').waitFor()
      expect(new URL(page.url()).hash).toBe(`#/collections/${name}?q=tides`)
    })
  }

  test('weighs meaning against words', async () => {
    const page = await stage.tab({}, '#/collections/docs?q=history')
    const scores = () => page.locator('.scores').allTextContents()
    await page.locator('.result mark').first().waitFor()
    const before = await scores()
    await page.getByText('Weights', { exact: true }).click()
    await page.getByLabel('meaning', { exact: true }).selectOption('100%')
    await expect.poll(scores).not.toEqual(before)
    expect(decodeURIComponent(page.url())).toContain('alpha=1')
  })

  test('shows a document in the passages that a model reads of it', async () => {
    const name = unique('long')
    const fields = ['title', 'text'].map((field) => ({ name: field, type: 'string' }))
    await request('POST', '/collections', { name, fields })
    await request('POST', `/collections/${name}/documents`, {
      id: 'reefs',
      title: '<b>Reefs</b>',
      text: LONG,
    })
    await request('POST', `/collections/${name}/documents`, { id: 'short', title: 'Short', text: 'A line.' })
    const page = await stage.tab({}, `#/collections/${name}/documents`)
    await page.getByRole('button', { name: '<b>Reefs</b>' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Passages' }).click()
    const passages = dialog.locator('.document-passage')
    await passages.first().waitFor()
    expect(await passages.count()).toBeGreaterThan(1)
    expect(await passages.first().textContent()).toMatch(/^1 › ReefsReefs are built by corals/)
    expect(await passages.last().textContent()).toContain('› Reefs › Tides')
    await expectSound(page, 'passages')
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'A line.' }).click()
    await dialog.getByRole('button', { name: 'Passages' }).click()
    await dialog.getByText('It has no long text').waitFor()
  })

  test('names a document whose text the embedding model refuses, and why', async () => {
    const refuser = await startRefuser()
    try {
      const name = unique('refused')
      const { port } = refuser.address() as AddressInfo
      await request('POST', '/collections', {
        name,
        fields: [
          { name: 'title', type: 'string' },
          {
            name: 'embedding',
            type: 'float[]',
            num_dim: 4,
            embed: {
              from: ['title'],
              model_config: {
                model_name: 'openai/text-embedding-3-small',
                url: `http://127.0.0.1:${port}`,
                api_key: 'sk-1234567890',
              },
            },
          },
        ],
      })
      await request('POST', `/collections/${name}/documents`, { id: 'good', title: 'Tides' })
      await request('POST', `/collections/${name}/documents`, { id: 'bad', title: POISON })
      const page = await stage.tab({}, `#/collections/${name}/documents`)
      const fault = page.getByRole('alert')
      await fault.getByText('Document `bad`').waitFor()
      expect(await fault.textContent()).toContain('This text is not taken')
      expect(await fault.textContent()).toContain('1 document can be found by words only')
      await page.getByText('1 document refused by the model').waitFor()
      await expectSound(page, 'refused')
      await request('PATCH', `/collections/${name}/documents/bad`, { title: 'Sea' })
      await expect
        .poll(async () => (await request('GET', `/collections/${name}`)).body.refused_embeddings, {
          timeout: 30_000,
        })
        .toBeUndefined()
      await page.reload()
      await page.getByText('words and meaning', { exact: true }).waitFor()
      expect(await fault.count()).toBe(0)
    } finally {
      refuser.close()
    }
  })

  test('says so at a page of documents that is not there', async () => {
    const name = unique('few')
    await request('POST', '/collections', { name, fields: [{ name: 'title', type: 'string' }] })
    await request('POST', `/collections/${name}/documents`, { id: 'a', title: 'One' })
    const page = await stage.tab({}, `#/collections/${name}/documents?page=7`)
    await page.getByRole('heading', { name: 'There is no such page' }).waitFor()
    await page.getByRole('link', { name: 'The first page' }).click()
    // Its title, and no button with "One" in its name: conversations at the side that other tests left have that too.
    await page.locator('.row-title', { hasText: /^One$/ }).waitFor()
  })

  test('has room for long names and shows markup as text, on the narrowest of phones', async () => {
    const name = `${unique('long')}-${'without-any-end-'.repeat(6)}`
    const fields = ['title', 'text', 'tag'].map((field) => ({
      name: field,
      type: 'string',
      facet: field === 'tag',
    }))
    await request('POST', '/collections', { name, fields })
    const markup = '<img src=x onerror="document.title=1"><b>Bold</b>'
    const documents = [
      { id: '<b>1</b>', title: markup, text: `Corals build ${markup} reefs.`, tag: markup },
      {
        id: 'x'.repeat(200),
        title: 'Donaudampfschiff'.repeat(20),
        text: 'y'.repeat(500),
        tag: 'z'.repeat(90),
      },
      { id: 'rtl', title: 'مرحبا بالعالم', text: 'الشعاب المرجانية تنمو ببطء', tag: 'بحر' },
    ]
    for (const document of documents) await request('POST', `/collections/${name}/documents`, document)
    const page = await stage.tab({ ...SIZES.phone, viewport: { width: 320, height: 640 } }, '#/collections')
    await page.getByRole('link', { name, exact: true }).waitFor()
    await expectSound(page, 'list')
    await page.goto(`${url}/#/collections/${name}/documents`)
    await page.getByText('مرحبا بالعالم').waitFor()
    expect(await page.evaluate("document.querySelectorAll('.row-title:dir(rtl)').length")).toBe(1)
    await expectSound(page, 'documents')
    for (const { id, title } of documents) {
      await page.locator('.row', { hasText: title }).click()
      await page.getByRole('dialog').getByRole('heading', { name: id, exact: true }).waitFor()
      await expectSound(page, `document ${id}`)
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
    }
    await page.goto(`${url}/#/collections/${name}?q=corals`)
    await page.locator('.result mark').first().waitFor()
    await expectSound(page, 'search')
    await page.locator('.facets button').first().click()
    await expect.poll(() => decodeURIComponent(page.url())).toContain('tag:=')
    expect(await page.locator('main :is(img, b)').count()).toBe(0)
    expect(await page.title()).toContain(name)
  })

  test('shows the filters of conversations that its address names', async () => {
    const page = await stage.tab({}, '#/conversations')
    const words = page.getByRole('searchbox', { name: 'Search questions and answers' })
    await words.waitFor()
    await page.evaluate("location.hash = '#/conversations?q=tides&user=ann&rating=down'")
    await expect.poll(() => words.inputValue()).toBe('tides')
    expect(await page.getByLabel('User').inputValue()).toBe('ann')
    await page.goBack()
    await expect.poll(() => words.inputValue()).toBe('')
    expect(await page.getByLabel('User').inputValue()).toBe('')
    await words.fill('reefs')
    await expect.poll(() => new URL(page.url()).hash).toBe('#/conversations?q=reefs')
  })

  test('keeps to the filter that is set last, whatever part of a list comes late', async () => {
    const page = await stage.tab({}, '#/nowhere')
    const gate = Promise.withResolvers<void>()
    const entry = (id: string) => ({
      id,
      title: id,
      turn_count: 1,
      protocol: 'parley',
      user_id: '',
      model_id: 'docs',
      created_at: Date.now(),
      updated_at: Date.now(),
    })
    await page.route(
      ({ pathname, searchParams }) => pathname === '/conversations' && searchParams.get('limit') === '50',
      async (route) => {
        const { searchParams: asked } = new URL(route.request().url())
        if (asked.has('cursor')) await gate.promise
        const title = `${asked.get('rating') ?? 'any'} ${asked.get('cursor') ?? 'first'}`
        const more = !asked.has('cursor') && !asked.has('rating')
        await route.fulfill({ json: { conversations: [entry(title)], ...(more && { next_cursor: 'late' }) } })
      },
    )
    await page.evaluate("location.hash = '#/conversations'")
    await page.getByText('any first').waitFor()
    const late = page.waitForResponse((response) => response.url().includes('cursor=late'))
    await page.getByRole('button', { name: 'Load earlier ones' }).click()
    await page.getByLabel('Rating').selectOption('Rated bad')
    await page.getByText('down first').waitFor()
    gate.resolve()
    await (await late).finished()
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
    expect(await page.locator('.row-title').allTextContents()).toEqual(['down first'])
    await page.unrouteAll({ behavior: 'wait' })
  })
})
