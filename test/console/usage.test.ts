/** What was asked and spent, and what failed, in the console. */
import { expect, test } from 'vitest'
import {
  failedTurn,
  key,
  model,
  QUESTION,
  sampleServer,
  summary,
  traced,
  usageRow,
  withConversation,
} from './sample'
import { failure } from './server'
import { address, choose, click, expectSound, openTab, screen, shows, texts, waitFor, within } from './tab'

const usage = (rows: object[]) => ({ from: '2026-10-31', to: '2026-11-29', usage: rows })

const cards = (title: string) =>
  within(screen.getByRole('heading', { name: title }).closest<HTMLElement>('.panel-card')!)

test('usage tells what was spent, in money and of budgets, by the names of keys', async () => {
  const server = sampleServer()
    .on('GET /conversations/models', [
      model('docs', { model_name: 'openai/gpt-4o-mini', tokens_per_day: 1_000 }),
    ])
    .on('GET /keys', { keys: [key(7, 'the shop', { limits: { turns_per_day: 2 } }), key(8, '')] })
    .on(
      'GET /usage',
      usage([usageRow({ key: '7', turns: 1 }), usageRow({ key: '8' }), usageRow({ key: '9' })]),
    )
  await openTab(server, '/usage')
  await shows('1 of 2 turns', '.share')
  await shows('3,600 of 1,000 tokens, spent', '.share .bad')
  const byKey = await waitFor(() => cards('By key'))
  const names = byKey.getAllByRole('listitem').map((item) => item.firstElementChild?.textContent)
  expect(names.sort()).toEqual(['9', 'Key 8', 'the shop'])
  expect(texts('.tile')).toEqual([
    'Turns7',
    'Tokens in3,000',
    'Tokens out600',
    expect.stringMatching(/^Cost\$0\.\d+$/),
  ])
  await choose(screen.getByLabelText('What is plotted'), 'Cost')
  await waitFor(() => expect(texts('.chart text').some((text) => text.includes('$'))).toBe(true))
  await expectSound('usage')
  await choose(screen.getByLabelText('Time'), 'The last 7 days')
  await waitFor(() => expect(address()).toBe('/usage?days=7'))
  const days = () => {
    const { query } = server.askedFor('GET /usage').at(-1)!
    return (Date.parse(query.get('to')!) - Date.parse(query.get('from')!)) / 86_400_000
  }
  await waitFor(() => expect(days()).toBe(6))
})

test('usage is read to its end, and without lists that the key may not read', async () => {
  const server = sampleServer()
    .on('GET /usage', ({ query }) =>
      usage(Array.from({ length: query.get('offset') === '0' ? 1_000 : 1 }, () => usageRow({ turns: 1 }))),
    )
    .on('GET /keys', () => failure(401, 'Forbidden'))
  await openTab(server, '/usage')
  await shows('Turns1,001', '.tile')
  expect(screen.queryByRole('alert')).toBe(null)
})

test('what failed is counted by its reason, and leads to the conversation', async () => {
  const server = withConversation(sampleServer(), 'c-1', {
    traces: [traced(1), failedTurn(2, 'Why?', 'No field `x`.'), failedTurn(3, 'Why not?', 'No field `x`.')],
  }).on('GET /usage', usage([usageRow()]))
  await openTab(server, '/usage')
  await shows('2 times', '.faults li')
  expect(texts('.faults .bad')).toEqual(['No field `x`.'])
  const asked = server.askedFor('GET /conversations').find(({ query }) => query.has('failed'))
  expect([asked?.query.get('failed'), asked?.query.get('limit')]).toEqual(['true', '20'])
  await expectSound('errors')
  screen.getByRole('link', { name: 'All failed answers' })
  await click(document.querySelector('.faults a')!)
  await shows('No field `x`.', '.faults .bad')
  expect(address()).toBe('/conversations/read/c-1')
  await screen.findByRole('heading', { name: QUESTION, level: 1 })
})

test('says so where nothing failed', async () => {
  const server = sampleServer()
    .on('GET /usage', usage([usageRow()]))
    .on('GET /conversations', ({ query }) => ({
      conversations: query.has('failed') ? [] : [summary('c-1')],
    }))
  await openTab(server, '/usage')
  await shows('No question failed in this time.')
})
