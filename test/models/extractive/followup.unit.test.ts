import { describe, expect, it } from 'vitest'
import { standalone } from '../../../src/models/extractive/followup'
import type { ChatMessage } from '../../../src/models/language-model'

const said = (...texts: string[]): ChatMessage[] =>
  texts.map((content, index) => ({ role: index % 2 === 0 ? 'user' : 'assistant', content }))

const cancer = said('What is throat cancer?', 'Throat cancer is a disease.')

describe('a follow-up', () => {
  it.each([
    ['Where were the meetups in 2023?', 'And the year before?', 'Where were the meetups in 2022?'],
    ['Where were the meetups in 2023?', 'and in 2021', 'Where were the meetups in 2021?'],
    ['Where were the meetups in 2023?', 'And what about 2021?', 'Where were the meetups in 2021?'],
    ['Wie hoch war der Umsatz 2023?', 'Und im Jahr danach?', 'Wie hoch war der Umsatz 2024?'],
    ['Quel était le prix en 2023 ?', "Et l'année précédente ?", 'Quel était le prix en 2022 ?'],
    ['¿Cuánto costaba en 2023?', '¿Y el año anterior?', '¿Cuánto costaba en 2022?'],
  ])('"%s" is asked of another year: %s', (before, question, expected) => {
    expect(standalone(question, said(before, 'So.'))).toBe(expected)
  })

  it.each([
    [['How do I install it on ubuntu?'], 'and on Arch Linux?', 'How do I install it on Arch Linux?'],
    [
      ['How do I install it on ubuntu?', 'and on Arch Linux?'],
      'and on windows',
      'How do I install it on windows?',
    ],
    [
      ['How long is leave for the mother?'],
      'What about for the father?',
      'How long is leave for the father?',
    ],
    [['Was kostet eine Führung für Erwachsene?'], 'Und für Kinder?', 'Was kostet eine Führung für Kinder?'],
    [
      ['Combien coûte le cours pour adultes ?'],
      'Et pour les enfants ?',
      'Combien coûte le cours pour les enfants ?',
    ],
    [['¿Cuándo abre en julio?'], '¿Y en agosto?', '¿Cuándo abre en agosto?'],
    [
      ['What is Parley?', 'How do I install it on Ubuntu?', 'and on Arch Linux?'],
      'And on Windows?',
      'How do I install Parley on Windows?',
    ],
    [
      ['Who was Ada Lovelace?', 'What did she publish in 1842?'],
      'And the year after?',
      'What did Ada Lovelace publish in 1843?',
    ],
    [['How do I connect to Slack?'], 'And to it?', 'And to Slack?'],
    [['How do I log in to the console?'], 'And in Rome?', 'And in Rome (console, log)?'],
  ])('puts another place, person or time where %s had one: %s', (before, question, expected) => {
    expect(standalone(question, said(...before.flatMap((each) => [each, 'So.'])))).toBe(expected)
  })

  it('in Spanish begins with a letter that English also has', () => {
    expect(standalone('Y-axis label colour?', said('What is a startup?', 'A firm.'))).toBe(
      'Y-axis label colour?',
    )
    const history = said('¿Cuánto cuesta la entrada?', 'Diez euros.')
    expect(standalone('¿Y gratis?', history)).toContain('entrada')
    expect(standalone('y los niños?', history)).toContain('entrada')
  })

  it('in German goes on with what was asked', () => {
    const history = said('Wann gibt es am Sonntag Frühstück?', 'Bis elf Uhr.')
    expect(standalone('Und was kostet es?', history)).toContain('Frühstück')
  })

  it.each([
    ['Outside the US too?', 'company match'],
    ['For part-timers as well?', 'company match'],
  ])('is a fragment that asks whether the same holds: %s', (question, expected) => {
    expect(standalone(question, said('Does the company match my 401k?', 'Yes.'))).toContain(expected)
    const suggested = 'What is “Other things that people use here” about?'
    expect(standalone(suggested, said('Does the company match my 401k?', 'Yes.'))).toBe(suggested)
    const whole = 'Do you sell garden furniture too?'
    expect(standalone(whole, said('Does the company match my 401k?', 'Yes.'))).toBe(whole)
  })

  it.each([
    ['Is it treatable?', 'Is throat cancer treatable?'],
    ['What are its symptoms?', "What are throat cancer's symptoms?"],
    ['What are the main symptoms?', 'What are the main symptoms (throat cancer)?'],
    ['Why?', 'Why (throat cancer)?'],
  ])('%s', (question, expected) => {
    expect(standalone(question, cancer)).toBe(expected)
  })

  it('that leaves all but a condition out is joined with the question before', () => {
    const history = said('Which horror films are set in space?', 'Some.')
    const question = standalone('What about films from 1995?', history)
    expect(question).toContain('What about films from 1995')
    expect(question).toContain('horror films')
    expect(question).toContain('space')
  })

  it('points at what the answer named', () => {
    const history = said(
      'Which horror film did Ridley Scott direct?',
      'Alien is a horror film by Ridley Scott.',
    )
    expect(standalone('What does the crew meet in it?', history)).toContain(
      'What does the crew meet in Alien',
    )
  })

  it.each([
    ['How does Parley store history?', 'How long is it kept?', 'How long is history kept (Parley)?'],
    [
      'How do I create a conversation model?',
      'And how do I delete it?',
      'And how do I delete conversation model?',
    ],
  ])('after "%s" is about what that asks of, not its verb', (before, question, expected) => {
    expect(standalone(question, said(before, 'So.'))).toBe(expected)
  })

  it.each([
    ['Who provides the dental insurance?', 'And vision?', 'And vision (provides, insurance)?'],
    ['How many vacation days do I get?', 'what about sick days?', 'what about sick days'],
    ['Who provides the dental insurance?', 'And in Canada?', 'dental insurance'],
    ['What is climate change?', 'and glaciers?', 'climate change'],
    ['Who provides the dental insurance?', 'and why?', 'dental insurance'],
  ])('after "%s" may ask about another kind: %s', (before, question, expected) => {
    const rewritten = standalone(question, said(before, 'So.'))
    expect(rewritten).toContain(expected)
    expect(rewritten).not.toContain('vacation')
  })

  it('goes on about the other kind', () => {
    const talk = said('Who provides the dental insurance?', 'Acme.', 'And vision?', 'Acme too.')
    const question = standalone('Who pays for it?', talk)
    expect(question).toContain('Who pays for vision')
    expect(question).toContain('insurance')
    expect(question).not.toContain('dental')
  })

  it('takes no name from a list of several', () => {
    const history = said('Which language models can answer?', '- Claude\n- Gemini')
    expect(standalone('What does it cost?', history)).not.toContain('Claude')
  })

  it('follows the talk, and keeps its frame', () => {
    const history = said('Tell me about sharks.', '...', 'What do great whites eat?', '...')
    const question = standalone('Where do they live?', history)
    expect(question).toContain('great whites live')
    expect(question).toContain('sharks')
  })

  it.each([
    'Tell me about lung cancer in dogs.',
    'Who wrote The Neverending Story?',
    'Is there a cure for malaria?',
  ])('that stands alone is left as it is: %s', (question) => {
    expect(standalone(question, cancer)).toBe(question)
  })

  it('takes no interjection and no contraction for a subject', () => {
    const history = said('What is throat cancer?', 'A disease.', "Okay, I'd love to know. Wow!", 'Ask on.')
    const question = standalone('Is it treatable?', history)
    expect(question).toBe('Is throat cancer treatable?')
  })

  it('knows what the last answer was about', () => {
    const history = said(
      'What keeps ships from harm in the dark?',
      'The Eddystone Lighthouse was built in 1698. It stood for five years.',
    )
    expect(standalone('When did it fall down?', history)).toContain('Eddystone Lighthouse')
  })

  it('leaves a pronoun alone that stands for what the question itself has named', () => {
    const question = 'What is a millet and why was it important?'
    expect(standalone(question, cancer)).toBe(question)
  })

  it('leaves small talk alone', () => {
    expect(standalone('Thanks a lot!', cancer)).toBe('Thanks a lot!')
    expect(standalone('How are they made?', said('Hello there!', 'Hello!'))).toBe('How are they made?')
  })

  it('says of what it is where only "the" says so', () => {
    expect(standalone('What is the survival rate?', cancer)).toBe(
      'What is the survival rate (throat cancer)?',
    )
  })

  it('without anything before it is left as it is', () => {
    expect(standalone('Is it?', [])).toBe('Is it?')
    expect(standalone('Is it?', said('Hello!', 'Hello.'))).toBe(
      'Is it (Hello)?'.replace(' (Hello)', '') || '',
    )
  })
})

it('a question that names what it measures is left as it is', () => {
  const history = said('Who shows where sharks sleep?', 'The diver Ana Ruiz shows where sharks sleep.')
  expect(standalone('How long was the reef filmed?', history)).toBe('How long was the reef filmed?')
})

describe('a name alone', () => {
  it.each([
    ['Which supplier delivers Tofu?', 'And Ikura?', 'Which supplier delivers Ikura?'],
    ['What is the weather in Berlin?', 'What about Rome?', 'What is the weather in Rome?'],
    ['How do I deploy to Vercel?', 'and to Deno Deploy', 'How do I deploy to Deno Deploy?'],
  ])('after "%s" asks it of that one: %s', (before, question, expected) => {
    expect(standalone(question, said(before, 'So.'))).toBe(expected)
  })

  it('with a preposition adds a circumstance where the name before had none', () => {
    const question = standalone('And on Windows?', said('How do I install Parley?', 'With npm.'))
    expect(question).toContain('on Windows')
    expect(question).toContain('Parley')
    expect(question).toContain('install')
  })
})

describe('a follow-up that leaves all out', () => {
  it('takes the verb along, which the phrases leave out', () => {
    expect(standalone('Why?', said('How do I delete a conversation?', 'Send DELETE.'))).toBe(
      'Why (conversation, delete)?',
    )
  })

  it('is known by "that" after a verb that helps', () => {
    const history = said('How do I delete a conversation?', 'Send a request.')
    expect(standalone('Can that be undone?', history)).toContain('conversation')
    const alone = 'Do you think that whales sleep at night?'
    expect(standalone(alone, history)).toBe(alone)
  })
})
