/** Tools in the console: they are made, changed and deleted, assistants list them, and answers tell of their calls. */
import { expect, test } from 'vitest'
import {
  assistant,
  BASKET,
  BOOKING,
  CALLS,
  DESK,
  sampleServer,
  traced,
  turn,
  withConversation,
} from './sample'
import { failure } from './server'
import { choose, click, expectSound, openTab, screen, shows, texts, type, waitFor, within } from './tab'

const button = (name: string | RegExp) => screen.findByRole('button', { name })
const field = (label: string) => screen.findByLabelText<HTMLInputElement>(label)

test('an HTTP tool is made with what was typed, and what is left empty is left out', async () => {
  const server = sampleServer().on('PUT /tools/booking', () => {
    server.on('GET /tools', { tools: [BOOKING] })
    return BOOKING
  })
  await openTab(server, '/tools?new=1')
  await type(await field('Name'), 'booking')
  await type(await field('What it does and when to call it, for the model'), 'Books a table.')
  await type(await field('Parameters, as a JSON Schema'), '{"type":"object"}')
  await choose(await field('Method'), 'POST')
  await type(await field('Address'), 'https://tables.example/bookings')
  await type(await field('Headers, one a line'), 'authorization: Bearer a:b\n\nx-shop:  7 ')
  await expectSound('new tool')
  await click(await button('Save'))
  await shows('Book a table · HTTP request · https://tables.example/bookings', '.item')
  expect(texts('.item .badge')).toEqual(['asks before each call'])
  expect(server.askedFor('PUT /tools/booking').map(({ body }) => body)).toEqual([
    {
      description: 'Books a table.',
      parameters: { type: 'object' },
      leave: 'each',
      headers: { authorization: 'Bearer a:b', 'x-shop': '7' },
      http: { method: 'POST', url: 'https://tables.example/bookings' },
    },
  ])
})

test('a masked header goes back as it is, and what is refused is said at its field', async () => {
  const server = sampleServer()
    .on('GET /tools', { tools: [BOOKING] })
    .on('PUT /tools/booking', ({ body }) => {
      if (body.leave === 'never') return failure(400, '`leave`: Not of a POST.')
      if (body.http.url.startsWith('ftp:')) return failure(400, '`http.url` is no complete URL.')
      return failure(400, '`headers.authorization`: Send it anew.')
    })
  const refusedAt = async (label: string, words: string) => {
    await click(await button('Save'))
    const at = await field(label)
    await waitFor(() => expect(at.getAttribute('aria-invalid')).toBe('true'))
    expect(document.getElementById(at.getAttribute('aria-describedby')!)?.textContent).toBe(words)
    await waitFor(() => expect(document.activeElement).toBe(at))
    expect(screen.queryByRole('alert')).toBe(null)
  }
  await openTab(server, '/tools')
  await click(await button('Edit the tool booking'))
  await choose(await field('When are visitors asked for leave?'), 'Never: it changes nothing')
  await refusedAt('When are visitors asked for leave?', 'Not of a POST.')
  await expectSound('a refused field')
  await choose(await field('When are visitors asked for leave?'), 'Once in a conversation')
  await type(await field('Address'), 'ftp://tables.example')
  await refusedAt('Address', '`http.url` is no complete URL.')
  await type(await field('Address'), 'https://other.example')
  await refusedAt('Headers, one a line', '`headers.authorization`: Send it anew.')
  const sent = server.askedFor('PUT /tools/booking').at(-1)!.body
  expect(sent).toMatchObject({
    title: 'Book a table',
    leave: 'once',
    headers: { authorization: 'Beare********' },
  })
  await type(await field('Headers, one a line'), 'no header')
  await refusedAt('Headers, one a line', '“no header” is no header. Write it as “name: value”.')
  await type(await field('Parameters, as a JSON Schema'), '[]')
  await type(await field('Headers, one a line'), '')
  await refusedAt(
    'Parameters, as a JSON Schema',
    'This is not a JSON object: it begins with { and ends with }.',
  )
  expect(server.askedFor('PUT /tools/booking')).toHaveLength(3)
  // What belongs to no field is said below them.
  server.on('PUT /tools/booking', () => failure(400, 'Give one of `http`, `mcp` and `page`.'))
  await type(await field('Parameters, as a JSON Schema'), '')
  await click(await button('Save'))
  await shows('Give one of `http`, `mcp` and `page`.', '[role=alert]')
})

test('a tool of an MCP server shows what the server lists, and names what it takes of that', async () => {
  const server = sampleServer()
    .on('GET /tools', { tools: [DESK] })
    .on('PUT /tools/desk', DESK)
  await openTab(server, '/tools')
  await waitFor(() =>
    expect(texts('.item li')).toEqual(['Find a ticketfindreads only', 'closemay change things']),
  )
  await click(await button('Edit the tool desk'))
  expect((await field('Which of its tools, one a line')).value).toBe('find\nclose')
  expect(screen.queryByLabelText('Parameters, as a JSON Schema')).toBe(null)
  await type(await field('Which of its tools, one a line'), '')
  await click(await button('Save'))
  await waitFor(() => expect(screen.queryByRole('dialog')).toBe(null))
  expect(server.askedFor('PUT /tools/desk').map(({ body }) => body)).toEqual([
    { leave: 'once', mcp: { url: 'https://desk.example/mcp' } },
  ])
})

test('a function of the page has neither an address nor headers, and is deleted', async () => {
  const server = sampleServer()
    .on('GET /tools', { tools: [BASKET] })
    .on('PUT /tools/basket', BASKET)
    .on('DELETE /tools/basket', () => {
      server.on('GET /tools', { tools: [] })
      return BASKET
    })
  await openTab(server, '/tools')
  await click(await button('Edit the tool basket'))
  await type(await field('Title, for visitors'), 'Look into the basket')
  for (const label of ['Address', 'Headers, one a line', 'When are visitors asked for leave?'])
    expect(screen.queryByLabelText(label)).toBe(null)
  await click(await button('Save'))
  await waitFor(() => expect(screen.queryByRole('dialog')).toBe(null))
  expect(server.askedFor('PUT /tools/basket').map(({ body }) => body)).toEqual([
    { title: 'Look into the basket', description: 'What is in the basket.', page: true },
  ])
  await click(await button('Delete the tool basket'))
  await click(await button('Delete the tool'))
  await screen.findByRole('heading', { name: 'No tools yet' })
})

test('an assistant lists built-in tools and stored ones, and gives up one that was deleted', async () => {
  const stored = assistant('help', { tools: ['search', 'gone'] })
  const server = sampleServer()
    .on('GET /tools', { tools: [BOOKING, BASKET] })
    .on('GET /assistants/help', stored)
    .on('PUT /assistants/help', stored)
  await openTab(server, '/assistants/help')
  const tools = within(await screen.findByRole('group', { name: 'Tools' }))
  const boxes = tools.getAllByRole<HTMLInputElement>('checkbox')
  expect(boxes.map(({ parentElement: label, checked }) => [label?.textContent, checked])).toEqual([
    ['Search the documents again', true],
    ['Read a document whole', false],
    ['Book a table', false],
    ['basket', false],
    ['gone (deleted)', true],
  ])
  await click(tools.getByLabelText('Book a table'))
  await click(tools.getByLabelText('gone (deleted)'))
  await expectSound('assistant with tools')
  await click(await button('Save'))
  await shows('Saved.', '.saved')
  expect(server.askedFor('PUT /assistants/help').map(({ body }) => body.tools)).toEqual([
    ['search', 'booking'],
  ])
})

test('a key that may not list tools keeps those of an assistant', async () => {
  const server = sampleServer()
    .on('GET /tools', () => failure(401, 'Forbidden'))
    .on('GET /assistants/help', assistant('help', { tools: ['booking'] }))
  await openTab(server, '/assistants/help')
  expect(await screen.findByLabelText<HTMLInputElement>('booking')).toMatchObject({ checked: true })
})

const TOLD = [
  'Find a ticket',
  'basket failed, or was not allowed',
  "Book a table waits for the visitor's leave",
]

test('a conversation tells which tools an answer called, with what, and what came of it', async () => {
  const server = withConversation(sampleServer(), 'c-1', {
    turns: [turn(1, 'Is it free?', { calls: CALLS })],
  })
  await openTab(server, '/conversations/c-1')
  await waitFor(() => expect(texts('.block summary').map((text) => text.trim())).toEqual(TOLD))
  expect(texts('.block pre')).toEqual([
    JSON.stringify({ of: 'ann' }, null, 2),
    'Ticket 7.',
    '{}',
    'There is none.',
    JSON.stringify({ guests: 2 }, null, 2),
  ])
  for (const block of document.querySelectorAll('details')) block.open = true
  await expectSound('calls of tools')
})

test('"Why this answer?" tells of the calls', async () => {
  const server = withConversation(sampleServer(), 'c-1', {
    turns: [turn(1, 'Is it free?', { calls: CALLS })],
    traces: [{ ...traced(1, 'Is it free?'), calls: CALLS }],
  })
  await openTab(server, 'c-1')
  const panel = await screen.findByRole('complementary', { name: 'Why this answer?' })
  const heading = await within(panel).findByRole('heading', { name: 'What it called' })
  const summaries = [...heading.parentElement!.querySelectorAll('summary')]
  expect(summaries.map(({ textContent }) => textContent?.trim())).toEqual(TOLD)
})
