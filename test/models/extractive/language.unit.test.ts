import { describe, expect, it } from 'vitest'
import { answerFrom as answer } from '../../../src/models/extractive/answer'
import { ENGLISH, languageOf } from '../../../src/models/extractive/language'
import { splitSentences } from '../../../src/models/extractive/sentences'
import type { Source } from '../../../src/models/language-model'
import { wordsOf } from '../../../src/models/words'

const answerFrom = (question: string, sources: Source[]): string => answer(question, sources).text

const from = (...documents: Record<string, unknown>[]) =>
  documents.map((document) => ({ collection: 'docs', document }))

/** What is said around an answer tells the language. */
const sayingOf = (question: string) => (languageOf(wordsOf(question))?.says ?? ENGLISH).unsure.split(' ')[0]

describe('the language of a question', () => {
  it.each([
    ['Was kostet ein Reisepass?', 'Vielleicht'],
    ['Wie lange habe ich Zeit, mich umzumelden?', 'Vielleicht'],
    ['Combien coûte le cours de levain ?', 'Les'],
    ['¿Cuánto cuesta alquilar la sala por la noche?', 'Puede'],
    ['Quanto costa il corso per i bambini?', 'Forse'],
    ['Quanto custa o curso para as crianças?', 'Talvez'],
    ['Hoeveel kost een paspoort voor mijn dochter?', 'Misschien'],
    ['How much is a passport?', 'The'],
    ['What is in the die of a war machine?', 'The'],
    ['parking', 'The'],
    ['Los Angeles', 'The'],
    ['USB C cable', 'The'],
    ['vitamin D deficiency', 'The'],
    ['AI policy for a model S', 'The'],
    ['van rental in Den Haag', 'The'],
    ['営業時間は何時ですか', 'The'],
  ])('%s', (question, first) => {
    expect(sayingOf(question)).toBe(first)
  })
})

const town = from(
  {
    id: '1',
    title: 'Bürgerbüro',
    text:
      'Das Bürgerbüro ist im Rathaus.\n\n| Dokument | Gebühr | Dauer |\n| --- | --- | --- |\n' +
      '| Personalausweis | 37,00 Euro | 3 Wochen |\n| Reisepass | 70,00 Euro | 4 Wochen |',
  },
  {
    id: '2',
    title: 'Hundesteuer',
    text: 'Ein Hund kostet 90 Euro im Jahr. Fällig ist die Steuer am 15. Februar.',
  },
)

describe('an answer to a question in German', () => {
  it('comes from the words that say something, not from its grammar', () => {
    expect(answerFrom('Was kostet ein Reisepass?', town)).toContain(
      '| Dokument | Gebühr | Dauer |\n| --- | --- | --- |\n| Personalausweis | 37,00 Euro | 3 Wochen |\n| Reisepass | 70,00 Euro',
    )
  })

  it('finds a word in another form', () => {
    const rules = from({
      id: '1',
      title: 'Regeln',
      text: 'Die Häuser werden im Winter geschlossen. Hunde sind an der Leine.',
    })
    expect(answerFrom('Wann wird das Haus geschlossen?', rules)).toContain('Die Häuser')
    const hostal = from({ id: '1', title: 'Hostal', text: 'Las habitaciones se limpian por la mañana.' })
    expect(answerFrom('¿Cuándo limpian mi habitación?', hostal)).toContain('Las habitaciones')
  })

  it('is not sure of a word that only begins alike', () => {
    const school = from({
      id: '1',
      title: 'Regeln',
      text: 'Schulden werden nicht erlassen. Nach Kassel fahren am Morgen zwei Busse.',
    })
    for (const question of ['Wo ist die Schule?', 'Wann ist die Kasse auf?'])
      expect(answerFrom(question, school)).toMatch(/^(?:Vielleicht beantworten|Die Dokumente beantworten)/)
  })

  it('parts what French and Italian write together', () => {
    const course = from({
      id: '1',
      title: 'Cours',
      text: "L'inscription coûte 20 francs. Le tablier est compris.",
    })
    expect(answerFrom("Combien coûte l'inscription pour les enfants ?", course)).toContain('coûte 20 francs')
  })

  it('keeps a date whole', () => {
    expect(answerFrom('Wann ist die Steuer fällig?', town)).toContain('am 15. Februar.')
  })

  it('declines in German, and takes no word for the pieces of another', () => {
    const { text, declined } = answer('Wer ist der Bürgermeister?', town)
    expect({ text, declined }).toEqual({
      text: 'Die Dokumente beantworten diese Frage nicht.',
      declined: true,
    })
  })
})

describe('the end of a sentence', () => {
  it.each([
    ['Wir liefern am 3. Oktober nicht. Danach schon.', 2],
    ['Das Büro ist im 2. Stock. Es hat einen Lift.', 2],
    ['Es gilt Nr. 5 der Satzung, z. B. für Vereine.', 1],
    ['It costs 15. Then it is yours.', 2],
    ['I am 15. Then I was 16.', 2],
    ['We are in San Diego, CA. Orders take 3 days.', 2],
    ['Train your abs. Then rest.', 2],
    ['The answer is 42. Nobody knows why.', 2],
  ])('%s', (text, count) => {
    expect(splitSentences(text)).toHaveLength(count)
  })
})
