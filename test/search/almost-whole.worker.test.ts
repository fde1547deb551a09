import { expect, it, vi } from 'vitest'
import { parseRequest } from '../../src/search/request/request'
import type { Conditions } from '../../src/search/run/candidates'
import { queryOf } from '../../src/search/run/keyword'
import { LongSearches, Pace } from '../../src/search/run/pace'
import { almostWhole } from '../../src/search/run/ranking/almost'
import { COUNTED, withIndex } from './index-by-sql'
import { ALL_PASS, only } from './passing'

const COUNT = 60_000
const EVERY = 3_000

it('of a large collection are found by looking for the words once in each slice', () =>
  withIndex(async ({ context }, sql) => {
    const title = `CASE WHEN i % ${EVERY} = 5 THEN 'moon star lake' WHEN i % 7 = 1 THEN 'star lake' ELSE 'star lake pond ' || i END`
    sql.exec(
      `${COUNTED} INSERT INTO documents (seq, id, body)
         SELECT i, 'd' || i, json_object('title', ${title}, 'text', 'nothing') FROM n`,
      COUNT,
    )
    sql.exec(`${COUNTED} INSERT INTO word_index (rowid, t0, t1) SELECT i, ${title}, 'nothing' FROM n`, COUNT)
    const request = parseRequest({ q: 'moonn star lake', query_by: 'title,text' }, context.schema)
    const query = vi.spyOn(Pace.prototype, 'query')
    const find = (filter: Conditions = ALL_PASS) =>
      almostWhole(context, request, queryOf(context, request), filter, new Pace(new LongSearches()))
    const found = await find()
    const searches = query.mock.calls.filter(([, { sql: text }]) => text.includes('MATCH'))
    const read = searches.map(([, { bindings }]) => Number(bindings[2]) - Number(bindings[1]) + 1)
    query.mockRestore()
    const wanted = Array.from({ length: COUNT / EVERY }, (_, n) => EVERY * n + 5)
    expect(found!.seqs).toEqual(wanted)
    expect(found!.terms[0]!.corrections).toEqual(['moon'])
    expect(read.reduce((sum, width) => sum + width, 0)).toBe(COUNT)
    const some = await find(only((seq) => seq > 20_000))
    expect(some!.seqs).toEqual(wanted.filter((seq) => seq > 20_000))
    expect(await find(only((seq) => seq < 5))).toBeUndefined()
  }))
