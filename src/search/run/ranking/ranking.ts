import type { SearchRequest } from '../../request/request'
import type { SortKey } from '../../request/sort'
import type { Conditions } from '../candidates'
import type { SearchContext } from '../context'
import type { Pace } from '../pace'
import type { DocumentScorer } from './documents'

/** A search whose matches are ranked. */
export interface Ranking {
  context: SearchContext
  request: SearchRequest
  scorer: DocumentScorer
  filter: Conditions
  /** all keys; the first is the text match */
  sort: SortKey[]
  pace: Pace
}
