/** Questions in languages other than English: their grammar says nothing, and their words have stems of their own. */
import { describe, expect, it } from 'vitest'
import { idsOf, makeCollection } from './make-collection'

const QUESTION = {
  query_by: 'text',
  prefix: 'false',
  drop_tokens_threshold: '1000000',
  match_stems: 'true',
  fusion: 'score',
}

/** Manuals seldom say "I", so that it is the rarest word of a question that does. */
const MANUALS = {
  German: {
    question: 'Wie kann ich einen Kernel installieren?',
    answer: 'Der Kernel wird aus dem Archiv installiert. Installierte Kernel stehen im Menü.',
    thanks: 'Wie einst kann ich nur einen Dank sagen: ich danke allen, ich danke euch.',
    others: 'Das Menü eines Programms beschreibt, was der Kernel nicht selbst tut.',
  },
  French: {
    question: 'Comment est-ce que je peux changer mon thème ?',
    answer: 'Le thème se règle dans le menu. Changer de thème prend une seconde.',
    thanks: 'Comment je remercie mon père, est-ce que je le peux ? Je le peux.',
    others: 'Le menu décrit les programmes, et le thème de chacun.',
  },
  Spanish: {
    question: '¿Cómo puedo cambiar mi zona horaria?',
    answer: 'La zona horaria se cambia en el menú. Cambiar de zona no tarda.',
    thanks: 'Cómo puedo dar mi gracias: yo puedo, si puedo, a mi padre.',
    others: 'El menú describe la zona de cada programa.',
  },
}

describe.each(Object.entries(MANUALS))('a question in %s', (_, { question, answer, thanks, others }) => {
  it('is searched by what it is about', async () => {
    const { search } = await makeCollection(
      [{ name: 'text', type: 'string' }],
      [
        { id: 'answer', text: answer },
        { id: 'thanks', text: thanks },
        ...Array.from({ length: 30 }, (_, at) => ({ id: `${at}`, text: others })),
      ],
    )
    const ids = idsOf(await search({ ...QUESTION, q: question }))
    expect(ids[0]).toBe('answer')
    expect(ids).not.toContain('thanks')
  })
})

describe('fields with the stems of a language', () => {
  const documents = [
    { id: 'a', text: 'Die Häuser werden von Gärtnern bewacht.' },
    { id: 'b', text: 'Der Bach fließt.' },
  ]
  const german = { name: 'text', type: 'string', locale: 'de', stem: true }
  const question = { ...QUESTION, q: 'Wer bewachte die Gärten eines Hauses?' }

  it('answer questions by them', async () => {
    const { search } = await makeCollection([german], documents)
    const { hits } = await search(question)
    expect(hits!.map(({ document, highlights }) => [document.id, highlights[0]?.matched_tokens])).toEqual([
      ['a', expect.arrayContaining(['Häuser', 'bewacht'])],
    ])
  })

  it('answer by English ones where a field beside them has no others', async () => {
    const { search } = await makeCollection(
      [german, { name: 'note', type: 'string', optional: true }],
      [...documents, { id: 'c', text: 'Der Fluss', note: 'running waters' }],
    )
    expect(idsOf(await search({ ...QUESTION, query_by: 'text,note', q: 'who runs the water' }))).toEqual([
      'c',
    ])
  })
})
