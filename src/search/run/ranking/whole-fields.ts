/** Documents with a field that equals the query. They come first, however low their BM25 is. */
import { fragment } from '../../fragment'
import { isArray } from '../../schema/layout'
import { where } from '../candidates'
import { filteredMatches } from '../filtered-matches'
import { partsOf } from '../match-set'
import { columnsOf } from '../query-words'
import { FEW, hasLength, wordsIn as lengthIn } from './matches'
import type { Ranking } from './ranking'
import type { Tier } from './tiers'

/** A text may have this many characters more than the query and still equal it: symbols around the words. */
const MOST_SIGNS = 1
/** Up to this many paths are read one by one, in a third of the time. */
const MOST_PATHS = 16
/** The highest count of words that FTS5 writes as one byte. */
const MOST_COUNTED = 127
const hex = (byte: number): string => byte.toString(16).padStart(2, '0')

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
  const [before, short, after] =
    paths.length > MOST_PATHS || fields.some(isArray)
      ? [
          ', json_each(?) p, json_each(x.body, p.value) t WHERE',
          't.atom IS NOT NULL AND length(t.atom) <= ?',
          [JSON.stringify(paths), most],
        ]
      : [
          ' WHERE',
          paths.map(() => 'length(x.body ->> ?) <= ?').join(' OR '),
          paths.flatMap((path) => [path, most]),
        ]
  const isShort = fragment(
    `EXISTS (SELECT 1 FROM documents x${before} x.seq = d.seq AND (${short}))`,
    ...after,
  )
  const columns = columnsOf(context, request)
  // A text that equals the query has as many words as it. FTS5 stores how many a text has. A symbol in the text may
  // part a word in two.
  const mostWords = 2 * initial.match.split(' ').length + 1
  const isCounted = mostWords <= MOST_COUNTED && columns.every(hasLength) && !fields.some(isArray)
  const counts = columns.map(({ column }) => `${lengthIn(initial.table, column)} <= x'${hex(mostWords)}'`)
  // Counts are read first, and most texts have too many words. With AND, SQLite would join all the documents, which takes
  // longer, and then read the counts.
  const test = isCounted
    ? fragment(`iif(${counts.join(' OR ')}, ${isShort.sql}, 0)`, ...isShort.bindings)
    : isShort
  const { set } = await filteredMatches(context, initial, filter, pace)
  const seqs: number[] = []
  for await (const { relation } of partsOf(set)(pace)) {
    seqs.push(...pace.query<{ seq: number }>(context.sql, where(relation, test)).map(({ seq }) => seq))
    if (seqs.length > FEW) return []
  }
  return scorer
    .scoreAll(seqs)
    .filter(({ text }) => text.best?.order === 2)
    .map(({ seq }) => seq)
}
