import { describe, expect, it } from 'vitest'
import { answerFrom } from '../../../src/models/extractive/answer'
import { NOTHING_ELSE, suggestionsFrom } from '../../../src/models/extractive/suggestions'
import type { Source } from '../../../src/models/language-model'
import { ask, request, textOf } from '../ask'

const source = (document: Record<string, unknown>): Source => ({ collection: 'docs', document })
const films = [
  source({ title: 'Alien', text: 'Alien is a film about a hungry guest in space. It is loud.' }),
  source({ title: 'Heat', text: 'Heat follows a detective and a thief in Los Angeles.' }),
  source({
    title: 'FAQ',
    heading: 'How do I rent a film?',
    text: 'Films are rented at the counter by the door.',
  }),
]

describe('suggestions', () => {
  it('are about what was found and not used, by a title that asks where there is one', () => {
    const answer = 'Alien is a film about a hungry guest in space.'
    expect(suggestionsFrom('What is Alien?', answer, films)).toBe(
      '<<What is “Heat” about?>>\n<<How do I rent a film?>>',
    )
  })

  it('do not repeat the question or each other', () => {
    const twice = [source({ title: 'How do I rent a film?', text: 'At the counter.' }), ...films, ...films]
    expect(suggestionsFrom('How do I rent films?', '', twice)).toBe(
      '<<What is “Alien” about?>>\n<<What is “Heat” about?>>',
    )
  })

  it('are three at most, and none where nothing has a title', () => {
    const many = Array.from({ length: 9 }, (_, index) =>
      source({ title: `Title${index}`, text: 'Some text here.' }),
    )
    expect(suggestionsFrom('x', '', many).split('\n')).toHaveLength(3)
    const nameless = [source({ text: 'Some text here.' }), source({ title: 'a <b>?', text: 'More text.' })]
    expect(suggestionsFrom('x', '', nameless)).toBe(NOTHING_ELSE)
  })

  const guide = source({
    title: 'The flour guide',
    text: '# The flour guide\n\nEverything that our millers know.\n\n## Wheat\n\nWheat flour has little protein.\n\n## The guide to rye flour\n\nRye flour has more.',
  })

  it.each([
    ['Where do you mill?', 'What is “The flour guide” about?'],
    ['Wo mahlen Sie das Mehl?', 'Worum geht es in „The flour guide“?'],
    ['Comment moulez-vous la farine ?', 'De quoi parle «\u00a0The flour guide\u00a0»\u00a0?'],
    ['¿Dónde muelen ustedes la harina?', '¿De qué trata «The flour guide»?'],
    ['Dove si macina la farina per il pane?', 'Di che cosa parla «The flour guide»?'],
    ['Onde vocês moem a farinha para o pão?', 'De que trata “The flour guide”?'],
    ['Waar wordt het meel voor het brood gemalen?', 'Waar gaat “The flour guide” over?'],
  ])('are in the language of the question, and answered by how the document begins: %s', (asked, next) => {
    expect(suggestionsFrom(asked, '', [guide])).toBe(`<<${next}>>`)
    const other = source({ title: 'Rye', text: 'What the flour guide is about is told in the flour guide.' })
    expect(answerFrom(next, [other, guide]).text).toBe('Everything that our millers know.')
    const typed = next.replaceAll('\u00a0', ' ')
    expect(answerFrom(typed, [other, guide]).text).toBe('Everything that our millers know.')
  })

  it('do not repeat a question in another language either', () => {
    const hours = source({ title: 'Öffnungszeiten', text: 'Montag bis Freitag von neun bis fünf.' })
    expect(suggestionsFrom('Was sind die Öffnungszeiten?', '', [hours])).toBe(NOTHING_ELSE)
    expect(suggestionsFrom('Wo ist das Büro?', '', [hours])).toBe('<<Worum geht es in „Öffnungszeiten“?>>')
  })

  it('are not asked of a document without a title', () => {
    const pumps = source({ text: 'Pumps are cleaned on Mondays. Dogs are welcome.' })
    expect(answerFrom('What is it about?', [pumps]).declined).toBe(true)
  })

  it('may be asked in other words, and ask for more than what a document is about', () => {
    expect(answerFrom('what is the flour guide about', [guide]).text).toBe(
      'Everything that our millers know.',
    )
    expect(answerFrom('What is the flour guide about rye?', [guide]).text).toContain('Rye flour')
  })

  it('come from the built-in model', async () => {
    const asked = request({
      purpose: 'followups',
      question: 'What is Alien?',
      sources: films.slice(0, 2),
      history: [{ role: 'assistant', content: 'It is loud.' }],
    })
    expect(textOf(await ask({ model_name: 'local/extractive' }, asked))).toBe('<<What is “Heat” about?>>')
  })
})
