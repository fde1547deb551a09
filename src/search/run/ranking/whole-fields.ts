/** Documents with a field that equals the query. They come first, however low their BM25 is. */
import { fragment } from '../../fragment'
import type { Range } from '../../range'
import { both, type RangedFilter, where } from '../candidates'
import { allMatches, atMost, wordsOf } from '../kept-matches'
import { FEW, fewMatches } from './matches'
import type { Ranking } from './ranking'
import type { Tier } from './tiers'

/** A text may have this many characters more than the query and still equal it: symbols around the words. */
const MOST_SIGNS = 1

/** Documents with a field that is the query, word by word. */
export async function wholeFields(ranking: Ranking, { initial }: Tier): Promise<number[]> {
  const { context, request, filter, scorer, pace } = ranking
  if (initial === undefined || !request.ranking.exactMatch) return []
  // A path of SQLite cannot quote a quote.
  const names = request.queryFields.map(({ field }) => field.name).filter((name) => !name.includes('"'))
  if (names.length === 0) return []
  const paths = names.flatMap((name) => [`$."${name}"`, `$."${name.replaceAll('.', '"."')}"`])
  const isShort: RangedFilter = (range) =>
    both(
      filter(range),
      fragment(
        `EXISTS (SELECT 1 FROM documents x, json_each(?) p, json_each(x.body, p.value) t
                  WHERE x.seq = d.seq AND t.atom IS NOT NULL AND length(t.atom) <= ?)`,
        JSON.stringify([...new Set(paths)]),
        request.q.length + MOST_SIGNS,
      ),
    )
  const words = wordsOf(initial, filter)
  const asked = words && {
    collects: words.collects,
    key: JSON.stringify([words.key, request.q.length, paths]),
    relation: (range: Range) => where(words.relation(range), isShort(range)),
  }
  const all = await allMatches(context, asked, pace)
  const few = all === undefined ? await fewMatches(context, initial, isShort, FEW, pace) : atMost(FEW, all)
  return scorer
    .scoreAll(few ?? [])
    .filter(({ text }) => text.best?.order === 2)
    .map(({ seq }) => seq)
}
