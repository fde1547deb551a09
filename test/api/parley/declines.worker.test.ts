/** What the built-in answerer says where the documents do not answer, inside workerd. */
import { beforeAll, describe, expect, it } from 'vitest'
import { call } from '../typesense/api'
import { ask, setStage } from './stage'

beforeAll(async () => {
  await setStage()
  for (const body of [
    { id: 'ja', text: '店は朝九時に開きます。日曜日は休みです。', city: '東京' },
    { id: 'cup', text: 'Cups and plates are washed at the museum by hand every evening.', city: 'Bonn' },
  ]) {
    await call('POST', '/collections/facts/documents', { body })
  }
})

describe('a decline', () => {
  it.each([
    ['a greeting', 'Hello! Who are you?', /^I am the built-in answerer/],
    ['thanks', 'thanks a lot', /^You are welcome/],
    ['a sum', '2+2', /^That is no question/],
    ['another topic', 'Who won the chess olympiad in Batumi?', /^No documents were found/],
  ])('of %s cites nothing', async (_, question, said) => {
    const [status, turn] = await ask({ question })
    expect(status).toBe(200)
    expect(turn.answer).toMatch(said)
    expect(turn.citations).toEqual([])
    const [, kept] = await call('GET', `/conversations/${turn.conversation_id}`)
    expect(kept.turns[0].citations).toEqual([])
  })

  it('that names places to read quotes them without citing them', async () => {
    const question = 'Which cups and plates does the museum of Lisbon wash?'
    const [, turn] = await ask({ question })
    expect(turn.answer).toMatch(/^The documents do not answer this directly/)
    expect(turn.answer).toContain('Cups and plates are washed')
    expect(turn.citations).toEqual([])
  })

  it('is not needed where any informative word of the question is enough', async () => {
    const [, turn] = await ask({
      question: 'Could you perhaps say how many metres the Brandenburg Gate measures?',
    })
    expect(turn.answer).toContain('The Brandenburg Gate is 26 metres high.')
    expect(turn.citations[0]).toMatchObject({ document_id: '1' })
  })
})

describe('a question in a script without spaces', () => {
  it('is answered', async () => {
    const [, turn] = await ask({ question: '日曜日は休みですか？' })
    expect(turn.answer).toContain('日曜日は休みです。')
  })
})

it('what a synonym of the collection finds is answered as if the question had that word', async () => {
  const question = 'Where are the beakers?'
  expect((await ask({ question }))[1].answer).not.toContain('Cups and plates')
  const synonyms = [{ id: 'b', synonyms: ['beakers', 'cups'] }]
  await call('PUT', '/synonym_sets/things', { body: { items: synonyms } })
  await call('PATCH', '/collections/facts', { body: { synonym_sets: ['things'] } })
  await expect
    .poll(async () => (await ask({ question }))[1].answer)
    .toContain('Cups and plates are washed at the museum')
})
