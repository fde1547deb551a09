/**
 * The searches of growth.mjs. A case has a name, the wait that is aimed at with 300,000 documents in milliseconds,
 * the parameters of its search by number, and the least SQL that finds as much in the same tables.
 */
import { makeDocument, VOCABULARY } from './documents.mjs'

const MAKERS = 500

export const GROWTH_SCHEMA = {
  fields: [
    { name: 'title', type: 'string' },
    { name: 'text', type: 'string' },
    { name: 'category', type: 'string', facet: true },
    { name: 'maker', type: 'string', facet: true },
    { name: 'points', type: 'int32' },
  ],
  default_sorting_field: 'points',
}

export const growthDocument = (n) => ({ ...makeDocument(n), maker: `maker ${(n * 7_919) % MAKERS}` })

const from = (start, n, step = 1) => VOCABULARY[start + ((n * step) % 200)]
const TEXT = { query_by: 'title,text' }
const ALL = { q: '*' }

/** Eight words, as a question has: common ones and a few that tell. */
const question = (n) =>
  [3, 5, 8, 2, 40, 90, 300, 1_500].map((at, index) => VOCABULARY[at + ((n * (index + 1)) % 7)]).join(' ')

const typo = (word) => `${word.slice(0, 3)}x${word.slice(4)}`

const MATCH = 'SELECT rowid, rank FROM word_index WHERE word_index MATCH ? ORDER BY rank LIMIT 10'
const anyOf = (words) => words.split(' ').join(' OR ')

/** @param columns the SQL columns of the fields, by name */
export const growthCases = ({ category, maker, points }) => [
  {
    name: 'a rare word',
    aim: 5,
    search: (n) => ({ ...TEXT, q: from(9_000, n, 37) }),
    raw: (n) => [MATCH, from(9_000, n, 37)],
  },
  {
    name: 'two words',
    aim: 25,
    search: (n) => ({ ...TEXT, q: `${from(20, n)} ${from(220, n, 3)}` }),
    raw: (n) => [MATCH, `${from(20, n)} ${from(220, n, 3)}`],
  },
  {
    name: 'a common word',
    aim: 60,
    search: (n) => ({ ...TEXT, q: VOCABULARY[2 + (n % 8)] }),
    raw: (n) => [MATCH, VOCABULARY[2 + (n % 8)]],
  },
  {
    name: 'a question of eight words',
    aim: 80,
    search: (n) => ({ ...TEXT, q: question(n) }),
    raw: (n) => [MATCH, anyOf(question(n))],
  },
  {
    name: 'a typo',
    aim: 15,
    search: (n) => ({ ...TEXT, q: typo(from(2_000, n, 11)) }),
    raw: (n) => [MATCH, from(2_000, n, 11)],
  },
  {
    name: 'all documents, two facets',
    aim: 100,
    search: () => ({ ...ALL, facet_by: 'category,maker' }),
    raw: () => [
      `SELECT ${category}, count(*) FROM columns GROUP BY 1
       UNION ALL SELECT ${maker}, count(*) FROM columns GROUP BY 1`,
    ],
  },
  {
    name: 'all documents, a filter on a number',
    aim: 15,
    search: (n) => ({ ...ALL, filter_by: `points:>${900 + (n % 90)}` }),
    raw: (n) => [
      `SELECT seq, count(*) OVER () FROM columns WHERE ${points} > ? ORDER BY ${points} DESC LIMIT 10`,
      900 + (n % 90),
    ],
  },
  {
    name: 'all documents, filtered by a facet',
    aim: 15,
    search: (n) => ({ ...ALL, filter_by: `maker:=maker ${n % MAKERS}` }),
    raw: (n) => [
      `SELECT seq, count(*) OVER () FROM columns WHERE ${maker} = ? ORDER BY ${points} DESC LIMIT 10`,
      `maker ${n % MAKERS}`,
    ],
  },
  {
    name: 'all documents, sorted by a number',
    aim: 15,
    search: (n) => ({ ...ALL, sort_by: `points:${n % 2 ? 'asc' : 'desc'}` }),
    raw: (n) => [`SELECT seq FROM columns ORDER BY ${points} ${n % 2 ? 'ASC' : 'DESC'} LIMIT 10`],
  },
  {
    name: 'all documents, grouped',
    aim: 100,
    search: () => ({ ...ALL, group_by: 'maker' }),
    raw: () => [
      `SELECT ${maker}, count(*), max(${points}) AS best FROM columns GROUP BY 1 ORDER BY best DESC LIMIT 10`,
    ],
  },
  {
    name: 'a common word, two facets',
    aim: undefined,
    search: (n) => ({ ...TEXT, q: VOCABULARY[2 + (n % 8)], facet_by: 'category,maker' }),
    raw: (n) => [
      `SELECT ${maker}, count(*) FROM columns
        WHERE seq IN (SELECT rowid FROM word_index WHERE word_index MATCH ?) GROUP BY 1`,
      VOCABULARY[2 + (n % 8)],
    ],
  },
]
