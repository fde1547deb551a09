import { describe, expect, it } from 'vitest'
import { isExcluded, isProjected, project } from '../../src/search/documents/store'

const DOCUMENT = {
  id: '1',
  title: 'a',
  title_short: 'b',
  'dotted.key': 'c',
  author: { name: 'd', born: { year: 1, place: 'e' } },
  parts: [{ text: 'f', size: 1 }, { size: 2 }],
}

describe('project', () => {
  it.each<[string, string, Record<string, unknown>]>([
    ['', '', DOCUMENT],
    ['title', '', { title: 'a' }],
    [' id , title ', '', { id: '1', title: 'a' }],
    ['title*', '', { title: 'a', title_short: 'b' }],
    ['*', 'author,parts,dotted.key,title*', { id: '1' }],
    ['author', '', { author: DOCUMENT.author }],
    ['author.name', '', { author: { name: 'd' } }],
    ['author.born.year,title', '', { title: 'a', author: { born: { year: 1 } } }],
    ['author.b*', '', { author: { born: { year: 1, place: 'e' } } }],
    ['parts.text', '', { parts: [{ text: 'f' }] }],
    ['parts.size', '', { parts: [{ size: 1 }, { size: 2 }] }],
    ['dotted.key', '', { 'dotted.key': 'c' }],
    ['nothing', '', {}],
    ['nothing.below', '', {}],
    ['author,title', 'author.born', { title: 'a', author: { name: 'd' } }],
    ['author', 'author.born.y*', { author: { name: 'd', born: { place: 'e' } } }],
    ['parts', 'parts.text', { parts: [{ size: 1 }, { size: 2 }] }],
    ['title', 'title', {}],
    ['author,parts', 'author.*,parts.size,parts.text', { parts: [{}, {}] }],
    ['author', 'author.born.year,author.born.place', { author: { name: 'd' } }],
    ['title,$other(a,b)', '', { title: 'a' }],
  ])('include %j exclude %j', (include, exclude, expected) => {
    expect(project(DOCUMENT, include, exclude)).toEqual(expected)
  })

  it('excludes what is not known without a word', () => {
    expect(project(DOCUMENT, '', 'nothing,author.nothing')).toEqual(DOCUMENT)
  })

  it('leaves the document as it is', () => {
    const before = structuredClone(DOCUMENT)
    project(DOCUMENT, 'author.name', 'parts.text')
    expect(DOCUMENT).toEqual(before)
  })
})

describe('isProjected', () => {
  it.each([
    ['', '', true],
    ['', 'embedding', false],
    ['', 'emb*', false],
    ['title', '', false],
    ['title,embedding', '', true],
  ])('include %j exclude %j', (include, exclude, expected) => {
    expect(isProjected('embedding', include, exclude)).toBe(expected)
  })
})

describe('isExcluded', () => {
  it.each([
    ['bio', 'bio, title', true],
    ['bio', '$authors(name, bio, city)', false],
    ['bio', '$authors(name, bio), bio', true],
    ['born.year', '$authors(a, born*), bo*', true],
  ])('field %j exclude %j', (field, exclude, expected) => {
    expect(isExcluded(field, exclude)).toBe(expected)
  })
})
