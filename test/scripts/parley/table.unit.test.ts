/** Tables and lists of objects as programs write them. */
import { expect, test } from 'vitest'
import { readContent } from '../../../scripts/parley/read/index.mjs'

const read = (path: string, text: string) => readContent(new TextEncoder().encode(text), path)

test.each([
  [
    '# Birds\n\nid,name\n1,Heron\n2,Stork\n',
    [
      { id: '1', name: 'Heron' },
      { id: '2', name: 'Stork' },
    ],
    [4, 5],
  ],
  ['Birds 2024;;\n;;\nid;name;size\n1;Heron;9\n', [{ id: '1', name: 'Heron', size: '9' }], [4]],
  ['name\nHeron\nStork, white\n', [{ name: 'Heron' }, { name: 'Stork' }], [2, 3]],
])('CSV: what a table is called stands above it: %s', async (text, rows, lines) => {
  expect(await read('x.csv', text)).toMatchObject({
    rows: rows.map((row) => expect.objectContaining(row)),
    lines,
  })
})

test.each([
  [
    '[{"id":12345678901234567890,"n":-9007199254740993,"f":1.5e300}]',
    [{ id: '12345678901234567890', n: '-9007199254740993', f: 1.5e300 }],
  ],
  ['[{"":1,"unnamed":2,"a":{"":3}}]', [{ unnamed: 2, unnamed_2: 1, a: { unnamed: 3 } }]],
  [
    '[["id","name"],["1","Heron"],["2",null]]',
    [
      { id: '1', name: 'Heron' },
      { id: '2', name: null },
    ],
  ],
  ['[[{"id":"1"}],[{"id":"2"}]]', [{ id: '1' }, { id: '2' }]],
])('JSON keeps digits, names and lists: %s', async (text, rows) => {
  expect(await read('x.json', text)).toEqual({ rows })
})
