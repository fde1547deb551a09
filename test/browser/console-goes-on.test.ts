/** Conversations that began elsewhere, opened in the console: a follow-up goes to what they were asked with. */
import type { Page } from 'playwright-core'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { loadSample } from '../../scripts/sample.mjs'
import {
  createAssistant,
  createHistory,
  createModel,
  KEY,
  makeCollection,
  query,
  request,
  url,
} from '../clients/harness'
import { CHROMIUM } from './chromium'
import { ConsoleStage, expectSound, LOOKS } from './console-stage'

const FIELDS = [
  { name: 'title', type: 'string' },
  { name: 'text', type: 'string' },
]
const HOURS = {
  id: 'hours',
  title: 'Opening hours',
  text: 'The shop in Mill Street is closed on Sunday. It opens at seven on Monday.',
}
const PRICES = {
  id: 'prices',
  title: 'Prices',
  text: 'A baguette costs two euros. A rye bread costs five euros.',
}
const FIRST = 'What does a baguette cost?'
const NEXT = 'And a rye bread?'

describe.runIf(CHROMIUM)('a conversation that is opened in the console', () => {
  let stage: ConsoleStage
  let page: Page
  let shop: string
  let notes: string
  let model: string

  beforeAll(async () => {
    await loadSample(url, KEY)
    shop = await makeCollection('shop', FIELDS, [HOURS, PRICES])
    notes = await makeCollection('notes', FIELDS, [{ ...PRICES, id: 'noted' }])
    stage = await ConsoleStage.set()
  })
  beforeEach(async () => {
    model = await createModel({ model_name: 'local/extractive' })
    page = await stage.tab()
    return async () => expect(await stage.reset()).toEqual([])
  })

  const asking = () => page.locator('.chat-foot .note')
  /** From a page that shows none: turns of the one before could be taken for those of this one. */
  const open = async (id: string, asked: RegExp) => {
    await page.goto(url)
    await page.evaluate(`location.hash = '${id}'`)
    await page.locator('.turn[aria-busy="false"]').waitFor()
    await asking().getByText(asked).waitFor()
  }
  const follow = async (id: string, question = NEXT) => {
    await page.getByLabel('Your question').fill(question)
    await page.keyboard.press('Enter')
    await page.locator('.turn[aria-busy="false"]', { hasText: 'rye bread costs five' }).nth(1).waitFor()
    expect(new URL(page.url()).hash).toBe(`#${id}`)
    return (await request('GET', `/conversations/${id}/trace`)).body.turns
  }
  const askDirectly = async (more: object) => {
    const { status, body } = await request('POST', '/conversations', { question: FIRST, model, ...more })
    expect([status, body.message]).toEqual([200, undefined])
    return body.conversation_id as string
  }

  test('goes on with the assistant that it was asked through, whatever the tab asks itself', async () => {
    const assistant = await createAssistant({ model, collections: [shop] })
    const asked = { model: assistant, messages: [{ role: 'user', content: FIRST }] }
    const { body } = await request('POST', '/v1/chat/completions', asked)
    const id = body.choices[0].message.context.conversation_id
    await open(id, new RegExp(`Asking the assistant ${assistant}\\.`))
    const sent = page.waitForRequest(`${url}/a/${assistant}/conversations`)
    const turns = await follow(id)
    expect((await sent).postDataJSON()).toMatchObject({ conversation_id: id, question: NEXT })
    expect(turns).toHaveLength(2)
    // The tab's own choice stays for what begins in it.
    await page.getByRole('button', { name: 'New conversation' }).click()
    await page.getByText('You are asking the collection docs').waitFor()
    expect(await asking().textContent()).toBe('Answers are written by a machine. Check what matters.')
  })

  test("goes on with the assistant of a page's widget, and answers an edited question too", async () => {
    const assistant = await createAssistant({ model, collections: [shop] })
    await createAssistant({ model, collections: [notes] })
    const { body } = await request('POST', `/a/${assistant}/conversations`, { question: FIRST })
    const id = body.conversation_id
    await open(id, new RegExp(`Asking the assistant ${assistant}\\.`))
    await follow(id)
    await page.getByRole('button', { name: 'Edit the question' }).last().click()
    await page.getByLabel('Your edited question').fill('Is the shop closed on Sunday?')
    await page.keyboard.press('Enter')
    await page.locator('.turn[aria-busy="false"]', { hasText: 'closed on Sunday. ' }).waitFor()
    const { turns } = (await request('GET', `/conversations/${id}`)).body
    expect(turns.map(({ question }: { question: string }) => question)).toEqual([
      FIRST,
      'Is the shop closed on Sunday?',
    ])
  })

  test('tells two assistants of the same model and collection apart', async () => {
    const assistants = [
      await createAssistant({ model, collections: [shop] }),
      await createAssistant({ model, collections: [shop] }),
    ]
    for (const assistant of assistants) {
      const { body } = await request('POST', `/a/${assistant}/conversations`, { question: FIRST })
      await open(body.conversation_id, new RegExp(`Asking the assistant ${assistant}\\.`))
      const turns = await follow(body.conversation_id)
      expect(turns.map(({ trace }: { trace: { assistant?: string } }) => trace.assistant)).toEqual([
        assistant,
        assistant,
      ])
    }
  })

  test('goes on with its model, its collection and its filter', async () => {
    const reply = await request(
      'GET',
      query(`/collections/${shop}/documents/search`, {
        q: FIRST,
        query_by: 'text',
        filter_by: 'id:=prices',
        per_page: 4,
        conversation: true,
        conversation_model_id: model,
      }),
    )
    const id = reply.body.conversation.conversation_id
    await createAssistant({ model, collections: [shop] })
    await open(
      id,
      new RegExp(
        `Asking the collection ${shop} with the model ${model}, at most 4 documents, only id:=prices\\.`,
      ),
    )
    const [, second] = await follow(id)
    expect(second.trace.searches[0]).toMatchObject({
      collection: shop,
      params: { filter_by: 'id:=prices', per_page: '4' },
    })
  })

  test('does not lose a filter to an assistant that has none', async () => {
    await createAssistant({ model, collections: [shop] })
    const assistant = await createAssistant({
      model,
      searches: [{ collection: shop, filter_by: 'id:=prices' }],
    })
    const other = await askDirectly({ collections: [shop], filter_by: 'id:!=hours' })
    await open(other, /with the model .*, only id:!=hours\./)
    const [, second] = await follow(other)
    expect(second.trace.searches[0].params.filter_by).toBe('id:!=hours')
    const { body } = await request('POST', `/a/${assistant}/conversations`, { question: FIRST })
    await open(body.conversation_id, new RegExp(`Asking the assistant ${assistant}\\.`))
  })

  test('goes on with each of its collections', async () => {
    const searches = [{ collection: shop, filter_by: 'id:=prices' }, { collection: notes }]
    const id = await askDirectly({ searches })
    await open(id, new RegExp(`Asking the collections ${shop}, ${notes} with the model ${model}, only`))
    const [, second] = await follow(id)
    const searched = second.trace.searches.map(
      ({ collection, params }: { collection: string; params: Record<string, string> }) => [
        collection,
        params.filter_by,
      ],
    )
    expect(searched).toEqual(
      expect.arrayContaining([
        [shop, 'id:=prices'],
        [notes, undefined],
      ]),
    )
  })

  test('gives way to a new one where somebody chooses another history, and says so before', async () => {
    const id = await askDirectly({ collections: [shop] })
    const sibling = await createModel({
      model_name: 'local/extractive',
      history_collection: (await request('GET', `/conversations/models/${model}`)).body.history_collection,
    })
    await open(id, new RegExp(`Asking the collection ${shop} with the model ${model}\\.`))
    await page.getByRole('button', { name: 'Settings' }).click()
    const dialog = page.getByRole('dialog')
    const models = dialog.getByRole('combobox', { name: 'Conversation model' })
    expect(await models.inputValue()).toBe(model)
    // A model with the same history goes on.
    await models.fill(sibling)
    await dialog.getByRole('button', { name: 'Use these', exact: true }).click()
    await asking().getByText(`with the model ${sibling}`).waitFor()
    expect(await follow(id)).toHaveLength(2)
    await page.getByRole('button', { name: 'Settings' }).click()
    await models.fill('docs')
    await dialog.getByText('A new one begins.').waitFor()
    await expectSound(page, 'settings that begin a conversation')
    await dialog.getByRole('button', { name: 'Use these in a new conversation' }).click()
    await page.getByRole('heading', { name: 'Ask your documents', level: 2 }).waitFor()
    expect(new URL(page.url()).hash).toBe('')
    await page.getByLabel('Your question').fill(FIRST)
    await page.keyboard.press('Enter')
    await page.locator('.turn[aria-busy="false"]').waitFor()
    await asking().getByText(`Asking the collection ${shop} with the model docs.`).waitFor()
    expect((await request('GET', `/conversations/${id}`)).body.turn_count).toBe(2)
  })

  test('is not said to have expired where it is there, but its model writes elsewhere now', async () => {
    const id = await askDirectly({ collections: [shop] })
    await open(id, /Asking the collection/)
    const { body } = await request('GET', `/conversations/models/${model}`)
    const moved = { ...body, history_collection: await createHistory() }
    expect((await request('PUT', `/conversations/models/${model}`, moved)).status).toBe(200)
    await page.getByLabel('Your question').fill(NEXT)
    await page.keyboard.press('Enter')
    await page.getByText('This conversation cannot go on: its model').waitFor()
    expect(await page.getByText('expired').count()).toBe(0)
    expect((await stage.reset()).filter((fault) => !fault.includes('404'))).toEqual([])
  })

  for (const { size, colorScheme, options } of LOOKS) {
    test(`shows what a follow-up goes to, on a ${size}, ${colorScheme}`, async () => {
      const id = await askDirectly({ collections: [shop, notes], filter_by: 'id:!=nothing' })
      page = await stage.tab(options, `#${id}`)
      await asking().getByText('Asking the collections').waitFor()
      await expectSound(page, 'opened')
    })
  }
})
