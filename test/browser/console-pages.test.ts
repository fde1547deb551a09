/** Conversations, assistants, models, keys, usage and the first run in the console. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { loadSample } from '../../scripts/sample.mjs'
import { createModel, KEY, request, unique, url } from '../clients/harness'
import { startLlm } from '../clients/llm'
import { serve } from '../serve'
import { CHROMIUM } from './chromium'
import { ConsoleStage, expectSound, LOOKS } from './console-stage'

const QUESTION = 'How does Parley store history?'

describe.runIf(CHROMIUM)('the pages of the console', () => {
  let stage: ConsoleStage

  const ask = async (question: string, more: Record<string, unknown> = {}, headers: HeadersInit = {}) => {
    const response = await fetch(`${url}/conversations`, {
      method: 'POST',
      headers: { 'x-typesense-api-key': KEY, ...headers },
      body: JSON.stringify({ question, model: 'docs', collections: ['docs'], ...more }),
    })
    return ((await response.json()) as { conversation_id: string }).conversation_id
  }

  beforeAll(async () => {
    await loadSample(url, KEY)
    await ask(QUESTION)
    stage = await ConsoleStage.set()
  })
  beforeEach(() => async () => expect(await stage.reset()).toEqual([]))

  const download = async (page: Page, name: string) => {
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name }).click(),
    ])
    return readFileSync((await file.path())!, 'utf8')
  }

  test('a conversation is found, read, exported and deleted', async () => {
    const user = unique('user')
    const id = await ask(QUESTION, {}, { 'x-typesense-user-id': user })
    await ask(
      'And without a field?',
      { conversation_id: id, query_by: 'nothing' },
      { 'x-typesense-user-id': user },
    )
    await ask('How are keys stored?', {}, { 'x-typesense-user-id': user })
    const page = await stage.tab({}, '#/conversations')
    await page.getByLabel('User', { exact: true }).fill(user)
    await page.keyboard.press('Enter')
    await expect.poll(() => page.locator('.row').count()).toBe(2)
    // A word of its answer, which no title has.
    await page.getByRole('searchbox', { name: 'Search questions and answers' }).fill('DOCUMENTS ASSISTANT')
    await expect.poll(() => page.locator('.row').count()).toBe(1)
    // The address says which are shown.
    await page.reload()
    await expect.poll(() => page.locator('.row').count()).toBe(1)
    await page.locator('.row').getByText(QUESTION).click()
    await page.locator('.read-turn .prose').getByText('two documents').waitFor()
    const failed = page.locator('.faults li', { hasText: 'And without a field?' })
    expect(await failed.locator('.bad').textContent()).toContain('nothing')
    expect(JSON.parse(await download(page, 'JSON'))).toMatchObject({
      id,
      user_id: user,
      turns: [{ question: QUESTION, citations: expect.any(Array) }],
    })
    const markdown = await download(page, 'Markdown')
    expect(markdown).toContain(`## ${QUESTION}`)
    expect(markdown).toContain('Sources: `docs/how-does-parley-store-history`')
    await page.getByRole('main').getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByRole('heading', { name: 'Conversations', level: 1 }).waitFor()
    expect((await request('GET', `/conversations/${id}`)).status).toBe(404)
    await page.getByLabel('User', { exact: true }).fill('nobody-at-all')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'No conversation fits' }).waitFor()
  })

  test('conversations are found by ratings and by what went wrong, and a rating is shown and exported', async () => {
    const user = unique('user')
    const headers = { 'x-typesense-user-id': user }
    const bad = await ask(QUESTION, {}, headers)
    const failed = await ask('How is it stored?', {}, headers)
    await ask('And without a field?', { conversation_id: failed, query_by: 'nothing' }, headers)
    // D1 hears of a failure after its reader does.
    const failures = async () =>
      (await request('GET', `/conversations?failed=true&user_id=${user}`)).body.conversations.length
    await expect.poll(failures, { timeout: 10_000 }).toBe(1)
    const rating = { rating: 'down', comment: 'Too <b>long</b>.', reasons: ['long'] }
    await request('PUT', `/conversations/${bad}/turns/1/feedback`, rating)
    const page = await stage.tab({}, `#/conversations?user=${user}`)
    await expect.poll(() => page.locator('.row').count()).toBe(2)
    await page.getByLabel('Answers', { exact: true }).selectOption('Failed')
    await page.locator('.row').getByText('How is it stored?').waitFor()
    await expect.poll(() => page.locator('.row').count()).toBe(1)
    expect(await page.locator('.row .badge').allTextContents()).toEqual(['failed'])
    await page.getByLabel('Answers', { exact: true }).selectOption('Any answer')
    await page.getByLabel('Rating', { exact: true }).selectOption('Rated bad')
    await page.locator('.row').getByText(QUESTION).waitFor()
    await expect.poll(() => page.locator('.row').count()).toBe(1)
    expect(await page.locator('.row .badge').allTextContents()).toEqual(['1 bad'])
    await expectSound(page, 'narrowed')
    await page.reload()
    await page.locator('.row').getByText(QUESTION).click()
    const said = page.getByRole('list', { name: 'Feedback' })
    await said.getByText('Too <b>long</b>.').waitFor()
    expect(await said.locator('.badge').allTextContents()).toEqual(['long'])
    await expectSound(page, 'rated')
    expect(JSON.parse(await download(page, 'JSON')).turns[0].feedback).toMatchObject([rating])
    expect(await download(page, 'Markdown')).toContain('Rated: down. Too <b>long</b>.')
    await page.getByRole('button', { name: 'Ask again' }).click()
    await page.locator('.turn[aria-busy="false"] .prose').getByText('two documents').waitFor()
    expect(new URL(page.url()).hash).not.toContain(bad)
    await page.getByRole('button', { name: 'Good answer' }).click()
    await page.getByRole('button', { name: 'Good answer', pressed: true }).waitFor()
    const again = new URL(page.url()).hash.slice(1)
    expect((await request('GET', `/conversations/${again}`)).body.turns[0].feedback).toMatchObject([
      { rating: 'up' },
    ])
  })

  test('a conversation shows which sentences of a model the documents do not support', async () => {
    const llm = await startLlm({
      answer: () => 'The bridge is 240 metres long. Its architect was Ferdinand Huber, in 1931.',
    })
    try {
      const model = await createModel({ model_name: 'openai/gpt', openai_url: llm.url })
      const name = unique('bridges')
      await request('POST', '/collections', { name, fields: [{ name: 'text', type: 'string' }] })
      await request('POST', `/collections/${name}/documents`, { text: 'The bridge is 240 metres long.' })
      const id = await ask('How long is the bridge?', { model, collections: [name] })
      const page = await stage.tab({}, `#/conversations/${id}`)
      await page.getByText('The documents do not support 1 of 2 sentences').click()
      const doubted = page.locator('.doubted li')
      await doubted.getByText('Its architect was Ferdinand Huber, in 1931.').waitFor()
      expect(await doubted.textContent()).toContain('Not in the documents: 1931, Ferdinand, Huber')
      await expectSound(page, 'unsupported sentences')
    } finally {
      await llm.stop()
    }
  })

  test('questions that nothing answers are grouped', async () => {
    const llm = await startLlm()
    try {
      const model = await createModel({ model_name: 'openai/gpt', openai_url: llm.url })
      const word = unique('zyx').replaceAll('-', '')
      const name = unique('empty')
      await request('POST', '/collections', { name, fields: [{ name: 'text', type: 'string' }] })
      await ask(`Where is ${word}?`, { model, collections: [name] })
      await ask(`where is ${word}`, { model, collections: [name] })
      const page = await stage.tab({}, '#/conversations/unanswered')
      const item = page.locator('.item', { hasText: new RegExp(word, 'i') })
      await item.getByText('2 times').waitFor()
      await expectSound(page, 'unanswered')
    } finally {
      await llm.stop()
    }
  })

  test('a model is made, tested and deleted, and a test that fails says why', async () => {
    const llm = await startLlm()
    const page = await stage.tab({}, '#/models')
    const id = unique('model')
    await page.getByRole('link', { name: 'New model' }).click()
    await page.getByLabel('Name', { exact: true }).fill(id)
    await page.getByRole('combobox', { name: 'Language model', exact: true }).fill('openai/gpt')
    await page.getByLabel("The provider's API key").fill('sk-test')
    await page.getByLabel('Address').fill(llm.url)
    await expectSound(page, 'new model')
    await page.getByRole('button', { name: 'Make the model' }).click()
    const item = page.locator('.item', { has: page.getByText(id, { exact: true }) })
    await item.getByRole('button', { name: 'Test' }).click()
    await item.getByText('answered in').waitFor()
    await llm.stop()
    await item.getByRole('button', { name: 'Test' }).click()
    await item.locator('.test-state .bad').waitFor()
    expect(await item.locator('.test-state .bad').textContent()).not.toContain('sk-test')
    expect(stage.faults.splice(0).every((fault) => /Failed to load resource/.test(fault))).toBe(true)
    await item.getByRole('button', { name: `Delete the model ${id}` }).click()
    await page.getByRole('button', { name: 'Delete the model', exact: true }).click()
    await item.waitFor({ state: 'detached' })
    expect((await request('GET', `/conversations/models/${id}`)).status).toBe(404)
  })

  test('an assistant is made, and answers in its preview; a key for its page is shown once', async () => {
    const name = unique('guide')
    const page = await stage.tab({}, '#/assistants/new')
    await page.getByLabel('Name', { exact: true }).fill(name)
    await page.getByLabel('docs', { exact: true }).check()
    await page.getByLabel('Model', { exact: true }).selectOption('docs')
    await page.getByLabel('First questions').fill(QUESTION)
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name, level: 1 }).waitFor()
    expect((await request('GET', `/assistants/${name}`)).body).toMatchObject({
      model: 'docs',
      collections: ['docs'],
      questions: [QUESTION],
    })
    await page.locator('parley-chat').getByRole('button', { name: QUESTION }).click()
    await page.locator('parley-chat .prose').getByText('two documents').waitFor()
    await expectSound(page, 'assistant')

    await page.getByRole('link', { name: 'Keys', exact: true }).click()
    await page.getByRole('link', { name: 'New key' }).first().click()
    await page.getByLabel('Assistant', { exact: true }).selectOption(name)
    await page.getByLabel('Origins').fill('https://www.example.com')
    await page.getByRole('button', { name: 'Make the key' }).click()
    const value = (await page.locator('.secret code').first().textContent()) ?? ''
    expect(await page.locator('.secret code').last().textContent()).toContain(`key="${value}"`)
    await expectSound(page, 'key')
    await page.getByRole('button', { name: 'Done' }).click()
    await page.getByText(`page of ${name}`).first().waitFor()
    expect(await page.locator('body').textContent()).not.toContain(value)
    const key = value
    expect((await request('GET', `/a/${name}`, undefined, key)).status).toBe(200)
    expect((await request('GET', '/collections', undefined, key)).status).toBe(401)
    await page.getByRole('button', { name: `Delete the key page of ${name}` }).click()
    await page.getByRole('button', { name: 'Delete the key', exact: true }).click()
    await page.getByText(`page of ${name}`).first().waitFor({ state: 'detached' })
  })

  test('usage tells what was spent, in money and of budgets', async () => {
    const description = unique('key')
    const { body: key } = await request('POST', '/keys', {
      description,
      actions: ['documents:search'],
      collections: ['*'],
      limits: { turns_per_day: 2 },
    })
    const body = { question: QUESTION, model: 'docs', collections: ['docs'] }
    expect((await request('POST', '/conversations', body, key.value)).status).toBe(200)
    const page = await stage.tab({}, '#/usage')
    await page.locator('.share li', { hasText: description }).getByText('1 of 2 turns').waitFor()
    const byKey = page.locator('.panel-card', { has: page.getByRole('heading', { name: 'By key' }) })
    await byKey.locator('li', { hasText: description }).waitFor()
    expect(await byKey.locator('li', { hasText: new RegExp(`^${key.id}\\D`) }).count()).toBe(0)
    await page.locator('.tile', { hasText: 'Cost' }).getByText('$').waitFor()
    await page.getByLabel('What is plotted').selectOption('dollars')
    await page.locator('.chart text', { hasText: '$' }).first().waitFor()
    await expectSound(page, 'usage')
    // A window that is narrower than the names of the axis is no fault.
    await page.setViewportSize({ width: 90, height: 600 })
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
    await page.setViewportSize({ width: 1360, height: 860 })
    // What failed is counted by its reason, and leads to the conversation.
    const user = unique('user')
    const headers = { 'x-typesense-user-id': user }
    const failed = await ask('How is it stored?', {}, headers)
    const field = unique('nothing')
    for (const question of ['Why?', 'Why not?']) {
      await ask(question, { conversation_id: failed, query_by: field }, headers)
    }
    const failures = async () =>
      (await request('GET', `/conversations?failed=true&user_id=${user}`)).body.conversations.length
    await expect.poll(failures, { timeout: 10_000 }).toBe(1)
    await page.goto(`${url}/#/keys`)
    await page.goto(`${url}/#/usage`)
    const fault = page.locator('.faults li', { hasText: field })
    await fault.getByText('2 times').waitFor()
    await expectSound(page, 'errors')
    await page.getByRole('link', { name: 'All failed answers' }).waitFor()
    await fault.getByRole('link').click()
    await page.locator('.faults .bad', { hasText: field }).first().waitFor()
    expect(new URL(page.url()).hash).toContain(failed)
  })

  test('the first run leads from a folder that is dropped to a snippet', async () => {
    const page = await stage.tab({}, '#/start')
    const name = unique('first')
    const folder = mkdtempSync(join(tmpdir(), `parley-${name}-`))
    mkdirSync(join(folder, 'sea'))
    writeFileSync(
      join(folder, 'sea', 'tides.md'),
      '# Tides\n\nThe moon pulls the sea, which makes the tides.',
    )
    await page.getByRole('link', { name: 'Import files' }).waitFor()
    // Only the browser itself can drop a folder.
    const session = await page.context().newCDPSession(page)
    const data = { items: [], files: [folder], dragOperationsMask: 1 }
    for (const type of ['dragEnter', 'dragOver', 'drop'] as const) {
      await session.send('Input.dispatchDragEvent', { type, x: 600, y: 300, data })
    }
    await page.getByText('The collection is made with').waitFor()
    await page.getByLabel('The first documents').getByText('sea/tides.md').waitFor()
    await page.getByLabel('Collection').fill(name)
    await page.getByText('The collection is made with').waitFor()
    await page.getByRole('button', { name: 'Import', exact: true }).click()
    await page.getByRole('link', { name: 'Go on' }).click()
    rmSync(folder, { recursive: true })
    await page.getByRole('button', { name: 'Make the assistant' }).click()
    await page.getByLabel('A question that your content answers').fill('What makes the tides?')
    await expectSound(page, 'start')
    await page.getByRole('button', { name: 'Ask', exact: true }).click()
    await page.locator('.step .prose').getByText('The moon pulls the sea').waitFor()
    await page.getByRole('button', { name: 'Make a key and a snippet' }).click()
    const text = (await page.locator('.secret code').textContent()) ?? ''
    const [, key = ''] = /assistant="[^"]+" key="([^"]+)"/.exec(text) ?? []
    expect(text).toContain(`${url}/widget/parley-chat.js`)
    expect((await request('GET', `/a/${name}`, undefined, key)).status).toBe(200)
    await page.getByRole('link', { name: 'See its sources, and how it came about' }).click()
    await page.locator('.question-text', { hasText: 'What makes the tides?' }).waitFor()

    const fields = [{ name: 'title', type: 'string' }]
    await request('POST', '/collections', { name: `${name}-empty`, fields })
    await page.goto(`${url}/#/start?collection=${name}-empty`)
    await page.getByText('It has no documents yet.').waitFor()
    expect(await page.locator('.step', { hasText: 'Your content' }).locator('.badge').count()).toBe(0)
  })

  test('a website is registered, read at once and removed', async () => {
    const into = unique('site')
    const site = await serve(({ url: path }, response) => {
      const found = path === '/' || path === '/docs'
      response.writeHead(found ? 200 : 404, { 'content-type': 'text/html' })
      response.end(
        found &&
          `<main><h1>Tides of ${path}</h1><p>${`The moon makes the tides of ${path}. `.repeat(9)}</p><a href="/docs">D</a> <a href="/lost">L</a></main>`,
      )
    })
    try {
      const page = await stage.tab({}, '#/sources?new=1')
      await page.getByLabel('Address of the website').fill(site.url)
      await page.getByRole('textbox', { name: 'Collection' }).fill(into)
      await page.getByRole('button', { name: 'Register' }).click()
      const source = page.locator('.item', { hasText: into })
      await source.getByRole('button', { name: 'Read now' }).click()
      await source.getByText('3 pages, 2 changed').waitFor()
      await source.getByText('1 failed').click()
      await source.getByText('answered with 404').waitFor()
      await expectSound(page, 'sources')
      expect((await request('GET', `/collections/${into}`)).body.num_documents).toBe(2)
      await source.getByRole('button', { name: 'Delete the source' }).click()
      await page.getByRole('button', { name: 'Remove the source' }).click()
      await source.waitFor({ state: 'detached' })
    } finally {
      await site.stop()
    }
  })

  for (const { size, colorScheme, options } of LOOKS) {
    test(`have no fault that axe knows, on a ${size}, ${colorScheme}`, async () => {
      const page = await stage.tab(options, '#/conversations')
      for (const [address, shown] of [
        ['conversations', '.row'],
        ['models', '.item'],
        ['assistants', '.item'],
        ['assistants/default', 'parley-chat'],
        ['usage', '.chart'],
        ['keys', '.page-head'],
        ['start', '.step'],
      ] as const) {
        await page.goto(`${url}/#/${address}`)
        await page.locator(shown).first().waitFor()
        await page.locator('.loading').waitFor({ state: 'detached' })
        await expectSound(page, address)
      }
      await page.goto(`${url}/#/conversations`)
      await page.locator('.row').first().click()
      await page.locator('.read-turn').first().waitFor()
      await expectSound(page, 'conversation')
    })
  }
})
