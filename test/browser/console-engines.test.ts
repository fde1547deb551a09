/** Collections in a cluster, in the console: connecting one, its nodes, and what a trace says of it. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  createHistory,
  createModel,
  createShows,
  disconnect,
  KEY,
  query,
  request,
  unique,
  url,
} from '../clients/harness'
import { Relay } from '../clients/relay'
import { CHROMIUM } from './chromium'
import { ConsoleStage, expectSound, LOOKS } from './console-stage'

describe.runIf(CHROMIUM)('clusters in the console', () => {
  let stage: ConsoleStage
  let there: string
  const connected: string[] = []
  const nodes: Relay[] = []

  beforeAll(async () => {
    stage = await ConsoleStage.set()
    there = await createShows()
    for (let node = 0; node < 2; node++) nodes.push(await new Relay(url).open())
  })
  afterAll(async () => {
    await disconnect(connected)
    for (const node of nodes) await node.close()
  })
  beforeEach(() => async () => {
    for (const node of nodes) node.fault = undefined
    expect(await stage.reset()).toEqual([])
  })

  for (const { size, colorScheme, options } of LOOKS) {
    test(`are connected by a form, on a ${size}, ${colorScheme}`, { timeout: 60_000 }, async () => {
      const name = unique('linked')
      const page = await stage.tab(options, '#/collections')
      await page.getByRole('link', { name: 'Connect a cluster' }).click()
      const dialog = page.getByRole('dialog', { name: 'Connect a cluster' })
      await dialog.getByLabel('Engine').waitFor()
      await expectSound(page, 'form')
      await dialog.getByLabel('Name in Parley').fill(name)
      await dialog.getByLabel('Nodes').fill(nodes.map((node) => node.url).join('\n'))
      await dialog.getByLabel('Collection there').fill(there)
      // A wrong key is told in plain words, and what was typed stays.
      await dialog.getByLabel('API key').fill('wrong')
      await dialog.getByRole('button', { name: 'Connect' }).click()
      await dialog.getByRole('alert').getByText('refuses the credentials. Connect again with a key').waitFor()
      const said = await dialog.getByRole('alert').textContent()
      for (const forTheApi of ['PATCH', 'stored', 'Try again in a moment'])
        expect(said).not.toContain(forTheApi)
      expect(stage.faults.splice(0).every((fault) => fault.includes('400'))).toBe(true)
      await expectSound(page, 'refused')
      await dialog.getByLabel('API key').fill(KEY)
      await dialog.getByRole('button', { name: 'Connect' }).click()
      connected.push(name)
      await dialog.getByText(`${name} is connected. The cluster has 5 documents`).waitFor()
      await dialog.getByRole('rowheader', { name: 'overview' }).waitFor()
      await expectSound(page, 'connected')
      await dialog.getByRole('link', { name: `Search ${name}` }).click()
      await page.getByText('Lives in Typesense as').waitFor()
      await page.getByText('All 2 nodes answer').click()
      for (const node of nodes) await page.getByText(node.url, { exact: true }).waitFor()
      nodes[1]!.fault = 'cut'
      await page.getByRole('button', { name: 'Ask again' }).click()
      await page.getByText('1 of 2 nodes does not answer').waitFor()
      await page.getByText('it could not be reached').waitFor()
      await expectSound(page, 'nodes')
      expect(await page.content()).not.toContain(`"${KEY}"`)
    })
  }

  test('ask for what each engine needs', async () => {
    const page = await stage.tab({}, '#/collections?connect=1')
    const dialog = page.getByRole('dialog', { name: 'Connect a cluster' })
    await dialog.getByLabel('Engine').selectOption('opensearch')
    await dialog.getByLabel('Index there').waitFor()
    await dialog.getByLabel('Password').waitFor()
    await dialog.getByLabel('Credentials').selectOption('none')
    expect(await dialog.getByLabel('Password').count()).toBe(0)
    await expectSound(page, 'opensearch')
    await dialog.getByLabel('Engine').selectOption('ai-search')
    await dialog.getByLabel('Account ID').waitFor()
    await dialog.getByLabel('Instance there').waitFor()
    expect(await dialog.getByLabel('Nodes').count()).toBe(0)
    await expectSound(page, 'ai-search')
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    expect(page.url()).not.toContain('connect')
  })

  test('show their nodes while none answers', async () => {
    const name = unique('down')
    const only = await new Relay(url).open()
    connected.push(name)
    const engine = { type: 'typesense', nodes: [only.url], credentials: { api_key: KEY }, collection: there }
    await request('POST', '/collections', { name, engine })
    await only.close()
    const page = await stage.tab({}, `#/collections/${name}`)
    await page.getByText('1 of 1 node does not answer').waitFor()
    await page.getByText('it could not be reached').first().waitFor()
    expect(stage.faults.splice(0).every((fault) => fault.includes('503'))).toBe(true)
  })

  test('are named in the trace of an answer, with their time', async () => {
    const name = unique('traced')
    connected.push(name)
    const engine = {
      type: 'typesense',
      nodes: nodes.map((node) => node.url),
      credentials: { api_key: KEY },
      collection: there,
    }
    await request('POST', '/collections', { name, engine })
    const model = await createModel({
      model_name: 'local/extractive',
      api_key: undefined,
      history_collection: await createHistory(),
    })
    const asked = await request(
      'GET',
      query(`/collections/${name}/documents/search`, {
        q: 'Which series is about a judge and her clerks?',
        query_by: 'title,overview',
        exclude_fields: 'embedding',
        conversation: 'true',
        conversation_model_id: model,
      }),
    )
    const page = await stage.tab({}, `#${asked.body.conversation.conversation_id}`)
    const panel = page.getByRole('complementary', { name: 'How it came about' })
    await panel.getByText(/^Typesense answered in /).waitFor()
    await expectSound(page, 'trace')
  })
})
