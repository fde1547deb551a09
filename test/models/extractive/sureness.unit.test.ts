import { describe, expect, it } from 'vitest'
import { answerFrom } from '../../../src/models/extractive/answer'
import { ENGLISH } from '../../../src/models/extractive/language'
import { hasLook, readQuestion } from '../../../src/models/extractive/question'
import { sentencesOf } from '../../../src/models/extractive/sentences'
import { resolveCitations } from '../../../src/turn/citations'
import { readTable } from '../static-embedder/read-table'

const WARNING = 'The documents may not answer this directly. What comes nearest:\n\n'

const from = (...documents: Record<string, unknown>[]) =>
  documents.map((document) => ({ collection: 'docs', document }))

describe('an answer that is not sure', () => {
  // Both pages say as much about the question.
  const tied = from(
    { id: 'a', title: 'Front desk', url: '/desk', text: 'A lost badge is blocked by the front desk.' },
    { id: 'b', title: 'Fees', text: 'A lost badge costs a visitor ten euros.' },
    { id: 'c', title: 'Lunch', text: 'Lunch is at noon.' },
  )
  const { text, declined } = answerFrom('lost badge on a journey, what now', tied)

  it('says so and shows the passages of several documents, each under its place', () => {
    expect(declined).toBeUndefined()
    expect(text.startsWith(WARNING) && text.endsWith(`\n\n${ENGLISH.check}`)).toBe(true)
    expect(text).toContain('**[Front desk](/desk)**\n\nA lost badge is blocked by the front desk.')
    expect(text).toContain('**Fees**\n\nA lost badge costs a visitor ten euros.')
    expect(text).not.toContain('Lunch')
  })

  it('cites each of them by a sentence that it has', () => {
    const citations = resolveCitations(text, tied)
    expect(new Set(citations.map(({ document_id: id }) => id))).toEqual(new Set(['a', 'b']))
    for (const { document_id: id, quote } of citations) {
      expect(tied.find(({ document }) => document.id === id)!.document.text).toContain(quote)
    }
  })

  it('becomes sure where one document alone says it', () => {
    const { text } = answerFrom('When is lunch?', tied)
    expect(text).toBe('Lunch is at noon.')
  })

  it('is not sure of a price without money, nor of a version without a number', () => {
    const pages = from(
      { id: 'paths', title: 'Paths', text: 'Resolving the paths of the tool has a small performance cost.' },
      { id: 'shop', title: 'Licence', text: 'A licence of the tool costs 20 euros a year.' },
      { id: 'odd', title: 'Node', text: 'Odd versions of Node are not tested, and should work.' },
    )
    const of = (question: string, at: number) => answerFrom(question, [pages[at]!]).warned === true
    expect(of('how much does the tool cost', 0)).toBe(true)
    expect(of('how much does a licence of the tool cost', 1)).toBe(false)
    expect(of('which versions of node are tested', 2)).toBe(true)
    expect(answerFrom('how much does the tool cost', pages).text.indexOf('20 euros')).toBeGreaterThan(-1)
    for (const price of ['$5', '5 €', '2.50', 'Price: 3', 'It is free.', 'no charge'])
      expect(hasLook('price', price)).toBe(true)
    expect(readQuestion('how much does it weigh').kind).toBe('count')
    expect(readQuestion('how much is a baguette').kind).toBe('price')
  })

  it('is not sure of one word alone, which any text can mention', () => {
    const table = readTable()
    const meaning = { vector: (text: string) => table.embed(text, 256) }
    const pages = from(
      { id: 'a', title: 'Fees', text: 'Bank transfers take a day, and those over the internet a minute.' },
      { id: 'b', title: 'Rooms', text: 'The rooms of the second floor have a balcony each.' },
    )
    expect(answerFrom('does it work without internet', pages, meaning).text).toMatch(
      /^The documents (?:may|do) not answer/,
    )
  })

  it('takes no page for one of many records because an import noted its section', () => {
    const pages = (fields: Record<string, string>) =>
      from({ id: 'a', title: 'Errors', text: 'The handler catches every error in one place.', ...fields })
    expect(answerFrom('catch every error in one place', pages({ section: 'Guides' })).warned).toBeUndefined()
    expect(answerFrom('catch every error in one place', pages({ price: '4' })).warned).toBe(true)
  })

  it('does not choose a section that says next to nothing for its heading', () => {
    const use =
      'Use `login` to ask for a name and a password before a page is shown to anybody who comes by and wants to read it.'
    const code = '```js\napp.use(login({ users }))\n```'
    const text = `# Sign in\n\n${use}\n\n${code}\n\n# Options\n\n## password of a page\n\nThe password of the page.`
    const { text: said } = answerFrom('put a password in front of a page', from({ id: 'a', text }))
    expect(said).toContain('app.use(login')
  })

  it('is less sure of a document that the search found further down', () => {
    const page = { id: 'x', title: 'Parking', text: 'Guests park behind the old mill.' }
    const others = Array.from({ length: 9 }, (_, index) => ({
      id: `o${index}`,
      title: `Note ${index}`,
      text: `Guests of house ${index} ring the bell.`,
    }))
    const question = 'where do guests leave their car, is parking behind the mill?'
    expect(answerFrom(question, from(page, ...others)).text).not.toContain(WARNING)
    expect(answerFrom(question, from(...others, page)).text).toContain(WARNING)
  })
})

describe('the look of an answer', () => {
  it.each([
    ['how often do we meet', 'often', 'The team meets weekly.', 'The team meets in room four.'],
    ["what's the max upload size", 'count', 'Uploads end at 5 MB.', 'Uploads end at the limit.'],
    ['how long is it kept', 'count', 'It is kept for one day.', 'It is kept in the cellar.'],
    [
      'what is the difference between a hut and a lodge',
      'difference',
      'Unlike a hut, a lodge has a keeper.',
      'A lodge has a keeper, and a hut has a stove.',
    ],
    [
      'tents vs huts',
      'difference',
      'Tents are lighter, whereas huts are dry.',
      'Tents and huts can be booked.',
    ],
    ['when was it built', 'when', 'It was built in 1698.', 'It was built of oak.'],
  ])('that %s asks for', (asked, kind, has, lacks) => {
    const question = readQuestion(asked)
    expect(question.kind).toBe(kind)
    expect(hasLook(question.kind, has)).toBe(true)
    expect(hasLook(question.kind, lacks)).toBe(false)
  })

  it.each([
    'How do I sign in with a different account to see my orders?',
    'Is it possible to export to a different folder from Excel?',
  ])('is that of no comparison: %s', (asked) => {
    expect(readQuestion(asked).kind).not.toBe('difference')
  })

  it('is warned of where it is missing', () => {
    const pages = from({ id: 'a', title: 'Reviews', text: 'Your supervisor reviews your work in person.' })
    expect(answerFrom('How often does my supervisor review my work?', pages).text).toContain(WARNING)
  })
})

describe('the sentences of Markdown', () => {
  const texts = (text: string) => sentencesOf({ text }).map((sentence) => sentence.text)

  it('are without the marks of boxes, and with their text', () => {
    expect(texts('::: warning\nNever do this at home.\n:::\n\n> [!NOTE]\n> Or do it outside.')).toEqual([
      'Never do this at home.',
      'Or do it outside.',
    ])
  })

  it('are not the mark of what was left out', () => {
    expect(texts('One thing is said here.\n\n…\n\nAnother thing is said there.')).toEqual([
      'One thing is said here.',
      'Another thing is said there.',
    ])
  })
})

describe('code', () => {
  const cookies = {
    id: 'cookies',
    title: 'Cookie helper',
    text:
      '# Cookie helper\n\nThe helper sets, reads and deletes a cookie with ease, and every cookie is encoded.\n\n' +
      '## Usage\n\n### Reading\n\n```ts\nreadOne(c)\n```\n\n### More\n\n```ts\ndeleteCookie(c)\n```\n',
  }
  const other = { id: 'cake', title: 'Cake', text: 'Cake is baked on Sundays in the kitchen.' }

  it('is found by the words that its names are made of', () => {
    const { text } = answerFrom('how do I delete a cookie', from(cookies, other))
    expect(text).toContain('**Usage › More**\n\n```ts\ndeleteCookie(c)\n```')
  })

  it('is introduced by its title once, where that is its first heading too', () => {
    const page = {
      id: 'helper',
      title: 'Cookie helper',
      text: '# Cookie helper\n\n## Install\n\n```bash\nnpm install cookie-helper\n```\n',
    }
    const { text } = answerFrom('how do I install the cookie helper', from(page, other))
    expect(text).toBe(
      `${ENGLISH.from}\n\n**Cookie helper › Install**\n\n\`\`\`bash\nnpm install cookie-helper\n\`\`\``,
    )
  })

  it('is not shown where one asks what a thing is', () => {
    expect(answerFrom('What is the cookie helper?', from(cookies, other)).text).not.toContain('```')
  })
})

it('a list of addresses to read on is no answer', () => {
  const page = {
    id: 'hook',
    title: 'Webhooks',
    text:
      '# Webhooks\n\n- Verify a webhook: https://docs.example.com/webhooks/verify/signatures\n\n' +
      '## Signatures\n\nA webhook is verified by the signature in its header.',
  }
  expect(answerFrom('how do I verify a webhook', from(page)).text).toMatch(
    /\n\n\*\*(?:Webhooks › )?Signatures\*\*\n\nA webhook is verified by the signature/,
  )
})

it('a title that many pages share does not make their first sentence the answer', () => {
  const page = (id: string, text: string) => ({ id, title: 'Employee handbook', text })
  const pages = from(
    page('1', 'Employee handbook of the company. It has many pages.'),
    page('2', 'Welcome to all of you. An employee of the company gets 20 days of holiday. Enjoy them.'),
    page('3', 'Some rules follow. Doors are shut at night.'),
  )
  expect(answerFrom('how many days of holiday does an employee get', pages).text).toContain('20 days')
})

it.each([
  ['When does the museum close?', 'The museum closes at 18 hours.'],
  ['How many rooms does the museum have?', 'The museum has 40 rooms.'],
])('a figure is told without the sections below it: %s', (question, said) => {
  const text = `# Museum\n\n${said}\n\n## Tickets\n\nA child pays 4 euros.`
  const { text: shown, ...verdict } = answerFrom(question, [
    { collection: 'c', document: { id: '1', title: 'Museum', text } },
  ])
  expect(shown).toContain(said)
  expect(shown).not.toContain('euros')
  expect(verdict).toEqual({})
})
