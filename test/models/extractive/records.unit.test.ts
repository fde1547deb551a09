import { describe, expect, it } from 'vitest'
import { answerFrom } from '../../../src/models/extractive/answer'

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

  it('is sure of a number that the record has', () => {
    const company = { id: '1', company_name: 'Stark Industries', num_employees: 5215, country: 'USA' }
    const { text } = answerFrom('How many employees does Stark Industries have?', [
      { collection: 'companies', document: company },
    ])
    expect(text).toBe('Stark Industries — num employees: 5215.')
  })
})
