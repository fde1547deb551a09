import { describe, expect, it } from 'vitest'
import { answerFrom } from '../../../src/models/extractive/answer'
import { titleOf } from '../../../src/models/extractive/sentences'

const WARNING = /^The documents may not answer this directly/

const rows = [
  ['Tofu', 'Produce', "Mayumi's", 23.25, 35],
  ['Ikura', 'Seafood', 'Tokyo Traders', 31, 0],
  ['Konbu', 'Seafood', "Mayumi's", 6, 24],
  ['Chai', 'Beverages', 'Exotic Liquids', 18, 39],
].map(([product, category, supplier, price, stock], line) => ({
  collection: 'products',
  document: {
    id: `products.csv/${line}`,
    product,
    category,
    supplier,
    price,
    stock,
    parley_source: 'products.csv',
    parley_hash: 'fa8efcedf18e9cbb214cc89e1025a3af',
  },
}))

describe('an answer from a record', () => {
  it('is the field that was asked for, and which record it is', () => {
    expect(answerFrom('Which supplier delivers Tofu?', rows).text).toContain(
      "product: Tofu; supplier: Mayumi's.",
    )
    expect(answerFrom('What is the price of Ikura?', rows).text).toContain('product: Ikura; price: 31.')
  })

  it('is the whole record where no field is named', () => {
    const text = "product: Tofu; category: Produce; supplier: Mayumi's; price: 23.25; stock: 35."
    expect(answerFrom('Tell me about Tofu', rows).text).toContain(text)
  })

  it('leaves out checksums and what an import keeps for itself', () => {
    expect(answerFrom('Tell me about Tofu', rows).text).not.toMatch(/hash|products\.csv/)
  })

  it.each([
    'How many products in the category Seafood?',
    'Which product of the category Seafood is the cheapest?',
    'List all products of the category Seafood',
    'average price of Seafood products',
  ])('does not pass for one about all of them: %s', (question) => {
    const { text, declined } = answerFrom(question, rows)
    expect(declined || WARNING.test(text)).toBe(true)
  })

  const shop = [
    ['Rain jacket', '149.00', 5, 'Packs into its own pocket; 10,000 mm water column.', 'green'],
    ['Tent for two', '329.00', 3, 'Weighs 1.9 kg, stands in five minutes, 3 seasons.', 'blue'],
  ].map(([name, price, stock, description, color], line) => ({
    collection: 'shop',
    document: { id: `shop.csv/${line}`, name, price, stock, description, color },
  }))

  it.each([
    ['What is the price of the rain jacket?', 'Rain jacket — price: 149.00.'],
    ['Which color is the tent?', 'Tent for two — color: blue.'],
    ['How heavy is the tent for two?', 'Weighs 1.9 kg, stands in five minutes, 3 seasons.'],
  ])(
    'is its field rather than a sentence of its description, where the question names it: %s',
    (question, answer) => {
      expect(answerFrom(question, shop).text).toContain(answer)
    },
  )

  it.each([
    ['How do I restore a section of the data?', { section: 'Operations', tags: ['backup'] }],
    [
      'What is the status of the restored data?',
      { status: 'stable', more: 'The page goes on for long. '.repeat(30) },
    ],
  ])('is no field of a page: %s', (question, fields) => {
    const text =
      'Stop the server and restore a section of the data with the file. The status of restored data is in the log.'
    const page = { collection: 'docs', document: { id: 'b', title: 'Backups', text, ...fields } }
    expect(answerFrom(question, [page]).text).not.toMatch(/section: |status: /)
  })

  it.each([
    [
      {
        product_name: 'Router X1',
        tagline: 'Do you need faster wifi?',
        text: 'It has four antennas and two bands.',
      },
      'Router X1',
    ],
    [{ work: 'The Night Watch', year: '1642?', text: 'It shows a company of guards at noon.' }, ''],
    [{ text: 'Who has the key to the server room?', author: 'Ann' }, ''],
    [{ Frage: 'Wann ist offen?', Antwort: 'Täglich von 12 bis 22 Uhr, auch sonntags.' }, 'Wann ist offen?'],
  ])('%o is called %s', (document, title) => {
    expect(titleOf(document)).toBe(title)
  })

  it('goes by the question of a list of questions, in any language', () => {
    const faq = [
      ['Wann ist die Küche geöffnet?', 'Täglich von 12 bis 22 Uhr, auch für Gruppen.'],
      ['Gibt es glutenfreie Gerichte?', 'Ja, fünf davon stehen auf der Karte.'],
    ].map(([Frage, Antwort], line) => ({
      collection: 'faq',
      document: { id: `faq.csv/${line}`, Frage, Antwort },
    }))
    const { text } = answerFrom('Wann ist die Küche offen?', faq)
    expect(text).toContain('Täglich von 12 bis 22 Uhr, auch für Gruppen.')
    expect(answerFrom('Welche glutenfreien Gerichte gibt es?', faq).text).toContain('Ja, fünf davon')
  })

  it('is sure of a number that the record has', () => {
    const company = { id: '1', company_name: 'Stark Industries', num_employees: 5215, country: 'USA' }
    const { text } = answerFrom('How many employees does Stark Industries have?', [
      { collection: 'companies', document: company },
    ])
    expect(text).toBe('Stark Industries — num employees: 5215.')
  })
})
