import { describe, expect, it } from 'vitest'
import { resolveCitations } from '../../src/turn/citations'

const sources = [
  {
    collection: 'films',
    document: { id: 'alien', title: 'Alien', text: 'Alien is a 1979 horror film directed by Ridley Scott.' },
  },
  {
    collection: 'films',
    document: { id: 'heat', title: 'Heat', text: 'Heat is a 1995 crime film written by Michael Mann.' },
  },
  {
    collection: 'films',
    document: { title: 'nameless', text: 'Nameless documents cannot be cited by anybody.' },
  },
]

const cited = (answer: string) =>
  resolveCitations(answer, sources).map(({ document_id, start, end }) => [
    document_id,
    answer.slice(start, end),
  ])

describe('labels in square brackets', () => {
  const labelled = sources.map((source, index) => ({
    ...source,
    label: `page ${index}, part.pdf#page=${index}`,
  }))

  it('name the document, before or after the full stop', () => {
    const answer =
      'It is scary [page 0, part.pdf#page=0]. So is that.[page 1, part.pdf#page=1][page 0, part.pdf#page=0]'
    const citations = resolveCitations(answer, labelled)
    expect(citations.map(({ document_id, start, end }) => [document_id, answer.slice(start, end)])).toEqual([
      ['alien', 'It is scary [page 0, part.pdf#page=0].'],
      ['heat', 'So is that.[page 1, part.pdf#page=1][page 0, part.pdf#page=0]'],
      ['alien', 'So is that.[page 1, part.pdf#page=1][page 0, part.pdf#page=0]'],
    ])
  })
})

describe('citations', () => {
  it('trace each sentence to the document that says it', () => {
    const answer =
      'The horror film Alien was directed by Ridley Scott. Michael Mann wrote the crime film Heat in 1995.'
    expect(cited(answer)).toEqual([
      ['alien', 'The horror film Alien was directed by Ridley Scott.'],
      ['heat', 'Michael Mann wrote the crime film Heat in 1995.'],
    ])
    expect(resolveCitations(answer, sources)[0]).toEqual({
      collection: 'films',
      document_id: 'alien',
      start: 0,
      end: 51,
      quote: 'Alien is a 1979 horror film directed by Ridley Scott.',
    })
  })

  it('are not given for what nobody says, nor for another number', () => {
    expect(cited('The documents do not answer this question.')).toEqual([])
    expect(cited('Bananas grow in warm countries all year round.')).toEqual([])
    expect(cited('Alien is a 1986 horror film directed by Ridley Scott.')).toEqual([])
    expect(cited('Nameless documents cannot be cited by anybody.')).toEqual([])
  })

  it('take a marker for what it says', () => {
    expect(cited('It is good [heat]. So is the other one. [alien]')).toEqual([
      ['heat', 'It is good [heat].'],
      ['alien', 'So is the other one. [alien]'],
    ])
    expect(cited('Both are fine [alien, heat].')).toHaveLength(2)
    expect(cited('See [alien](https://example.com) and [unknown].')).toEqual([])
  })

  it('pass over code, and find their places among repeated sentences', () => {
    const sentence = 'Heat is a 1995 crime film written by Michael Mann.'
    const answer = `${sentence}\n\n\`\`\`\n${sentence}\n\`\`\`\n- ${sentence}`
    const places = resolveCitations(answer, sources).map(({ start }) => start)
    expect(places).toEqual([0, answer.lastIndexOf('- Heat')])
  })
})
