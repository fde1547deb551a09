/** A handful of books with a field of every kind. */
import { makeCollection, type TestCollection } from './make-collection'

export const makeBooks = (): Promise<TestCollection> =>
  makeCollection(
    [
      { name: 'title', type: 'string', sort: true },
      { name: 'text', type: 'string' },
      { name: 'tags', type: 'string[]', facet: true },
      { name: 'genre', type: 'string', facet: true, optional: true },
      { name: 'year', type: 'int32', facet: true },
      { name: 'price', type: 'float', optional: true, facet: true },
      { name: 'stock', type: 'bool', facet: true },
      { name: 'at', type: 'geopoint', optional: true },
      { name: 'secret', type: 'string', index: false, optional: true },
    ],
    [
      {
        id: 'fox',
        title: 'The quick fox',
        text: 'A fox runs over the hills of Auvergne.',
        tags: ['animals', 'High hills'],
        genre: 'Nature',
        year: 1990,
        price: 10,
        stock: true,
        at: [48.85, 2.35],
      },
      {
        id: 'dogs',
        title: 'Lazy dogs',
        text: 'Dogs sleep while foxes run.',
        tags: ['animals'],
        genre: 'Nature',
        year: 2000,
        price: 5.5,
        stock: false,
        at: [52.52, 13.4],
      },
      {
        id: 'databases',
        title: 'databases',
        text: 'The documentation of streaming databases, state-of-the-art.',
        tags: ['computers'],
        genre: 'Technique',
        year: 2010,
        stock: true,
        at: [51.5, -0.12],
      },
      {
        id: 'universities',
        title: 'Universities',
        text: 'A university is a place of learning.',
        tags: [],
        year: 2020,
        price: 7,
        stock: true,
      },
    ],
    { default_sorting_field: 'year' },
  )
