/** Documents with a field that equals the query. They come first, however low their BM25 is. */
import { fragment } from '../../fragment'
import type { Range } from '../../range'
import { isArray } from '../../schema/layout'
import { both, type RangedFilter, where } from '../candidates'
import { allMatches, atMost, wordsOf } from '../kept-matches'
import { FEW, fewMatches } from './matches'
import type { Ranking } from './ranking'
import type { Tier } from './tiers'

/** A text may have this many characters more than the query and still equal it: symbols around the words. */
const MOST_SIGNS = 1
/** Up to this many paths are read one by one, in a third of the time. */
const MOST_PATHS = 16

/** Documents with a field that is the query, word by word. */
export async function wholeFields(ranking: Ranking, { initial }: Tier): Promise<number[]> {
  const { context, request, filter, scorer, pace } = ranking
  if (initial === undefined || !request.ranking.exactMatch) return []
  // A path of SQLite cannot quote a quote.
  const fields = request.queryFields.map(({ field }) => field).filter(({ name }) => !name.includes('"'))
  if (fields.length === 0) return []
  const paths = [
    ...new Set(fields.flatMap(({ name }) => [`$."${name}"`, `$."${name.replaceAll('.', '"."')}"`])),
  ]
  const most = request.q.length + MOST_SIGNS
  const [before, test, after] =
    paths.length > MOST_PATHS || fields.some(isArray)
      ? [
          ', json_each(?) p, json_each(x.body, p.value) t WHERE',
          't.atom IS NOT NULL AND length(t.atom) <= ?',
          [JSON.stringify(paths), most],
        ]
      : [' WHERE', paths.map(() => 'length(x.body ->> ?) <= ?').join(' OR '), paths.flatMap((path) => [path, most])]
  const isShort: RangedFilter = (range) =>
    both(filter(range), fragment(`EXISTS (SELECT 1 FROM documents x${before} x.seq = d.seq AND (${test}))`, ...after))
  const words = wordsOf(initial, filter)
  const begun = words?.words && (await allMatches(context, words, pace))
  const asked = words && {
    collects: words.collects && begun === undefined,
    key: JSON.stringify([words.key, most, paths]),
    relation: (range: Range) => where(begun?.within(range) ?? words.relation(range), isShort(range)),
  }
  const all = await allMatches(context, asked, pace)
  const few = all === undefined ? await fewMatches(context, initial, isShort, FEW, pace) : atMost(FEW, all)
  return scorer
    .scoreAll(few ?? [])
    .filter(({ text }) => text.best?.order === 2)
    .map(({ seq }) => seq)
}
