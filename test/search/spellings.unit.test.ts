import { describe, expect, it } from 'vitest'
import { otherSpellings } from '../../src/search/text/similar'

describe('British and American spellings', () => {
  it.each([
    ['colour', 'color'],
    ['colours', 'colors'],
    ['behaviour', 'behavior'],
    ['organise', 'organize'],
    ['organisation', 'organization'],
    ['customised', 'customized'],
    ['analyse', 'analyze'],
    ['centre', 'center'],
    ['catalogue', 'catalog'],
    ['licence', 'license'],
  ])('%s and %s', (british, american) => {
    expect(otherSpellings(british)).toContain(american)
    expect(otherSpellings(american)).toContain(british)
  })

  it.each(['hour', 'for', 'island', 'query'])('%s has no other', (word) => {
    expect(otherSpellings(word)).toEqual([])
  })
})
