/** Documents that are longer than a model's `max_bytes`, as a user meets them: whole pages, imported as they are. */
import { expect, test } from 'vitest'
import { ask, askBySearch, createHistory, createModel, request, unique } from './harness'

const filler = (about: string) =>
  `## The ${about}\n\n${Array.from({ length: 12 }, (_, at) => `The ${about} has detail ${at} that few people ask for.`).join(' ')}`

/** A page of some 40 KB with one answer in its middle. */
const PAGE = [
  ...Array.from({ length: 35 }, (_, at) => filler(`hall ${at}`)),
  '## Sleeping sharks\n\nNurse sharks rest in piles of forty under the ledges of the north reef.',
  ...Array.from({ length: 35 }, (_, at) => filler(`garden ${at}`)),
].join('\n\n')

test('a page that is far too long is answered from, and what was left of it is told everywhere', async () => {
  const name = unique('long')
  await request('POST', '/collections', {
    name,
    fields: [
      { name: 'title', type: 'string' },
      { name: 'text', type: 'string' },
    ],
  })
  await request('POST', `/collections/${name}/documents`, { id: 'guide', title: 'Guide', text: PAGE })
  await request('POST', `/collections/${name}/documents`, {
    id: 'note',
    title: 'Sharks',
    text: 'Rays are no sharks.',
  })
  const model = await createModel({
    model_name: 'local/extractive',
    history_collection: await createHistory(),
    max_bytes: 4_096,
  })
  const question = 'Where do nurse sharks rest?'
  const { body } = await askBySearch(model, name, question, { query_by: 'title,text' })
  expect(body.conversation.answer).toContain('under the ledges of the north reef')
  expect(body.conversation.citations[0]).toMatchObject({ document_id: 'guide' })
  const cut = [{ collection: name, document_id: 'guide', passages: expect.any(Number), of: 71 }]
  expect(body.conversation.cut).toEqual(cut)
  // Hits stay documents.
  expect(body.hits[0].document.text).toBe(PAGE)

  const asked = await ask(model, name, { question })
  expect(asked.body.cut).toEqual(cut)
  const { body: trace } = await request('GET', `/conversations/${asked.body.conversation_id}/trace`)
  expect(trace.turns[0].trace.cut).toEqual(cut)
  const { body: events } = await request('GET', `/conversations/${asked.body.conversation_id}/events`)
  expect(events).toContain('"cut":[{')
})
