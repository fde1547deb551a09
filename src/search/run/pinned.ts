/** Documents that a search or a curation pins to positions. */
import { findRows } from '../documents/read-rows'
import { Filter } from '../filter/filter'
import type { SearchRequest } from '../request/request'
import type { Candidates } from './candidates'
import type { SearchContext } from './context'
import type { HitRow } from './hits'
import { filteredIn, once, seqsOf, setOf, withSeqs } from './match-set'
import type { Pace } from './pace'
import type { Window } from './window'

/** A pinned document. Positions begin with 1. */
export interface Pinned {
  seq: number
  position: number
}

/**
 * The documents that a search pins, by position. Of two at one position, the one named first comes first. One that has not been
 * compared with the filter when the search is cut off is left out.
 */
export async function pinnedDocuments(
  context: SearchContext,
  request: SearchRequest,
  pace: Pace,
): Promise<Pinned[]> {
  if (request.pinnedHits.length === 0) return []
  let seqs = findRows(
    context.sql,
    request.pinnedHits.map(({ id }) => id),
  )
  if (request.filterPinned) {
    const filter = new Filter(context.schema, request.filterBy, context.joins?.documents)
    const passing = new Set(
      seqsOf(await filteredIn(context, filter, setOf([...new Set(seqs.values())]), pace)),
    )
    seqs = new Map([...seqs].filter(([, seq]) => passing.has(seq)))
  }
  return request.pinnedHits
    .filter(({ id }) => seqs.has(id) && !request.hiddenHits.includes(id))
    .map(({ id, position }) => ({ seq: seqs.get(id)!, position }))
    .sort((a, b) => a.position - b.position)
}

/** Which of the hits are pinned documents, by place. Those positioned past the end follow the last hit. */
export function placesOf(pinned: readonly Pinned[], natural: number): Map<number, number> {
  const places = new Map<number, number>()
  let next = 0
  for (const [index, { seq, position }] of pinned.entries()) {
    // Two documents pinned to one position follow each other.
    next = Math.min(Math.max(position - 1, next), natural + index)
    places.set(next++, seq)
  }
  return places
}

/** A window of other matches that holds all those that share a window with pinned documents. */
export function besidePinned<Place extends Window>(window: Place, pinned: readonly Pinned[]): Place {
  const offset = Math.max(0, window.offset - pinned.length)
  return { ...window, offset, limit: window.limit + window.offset - offset }
}

/**
 * A window with the pinned documents in their places.
 * @param others the other matches: those of the window that `besidePinned` returns, and the number of all
 */
export function withPinned(
  others: { rows: readonly HitRow[]; found: number },
  pinned: readonly Pinned[],
  window: Window,
): { rows: HitRow[]; found: number } {
  const places = placesOf(pinned, others.found)
  const found = others.found + pinned.length
  const before = [...places.keys()].filter((place) => place < window.offset).length
  const { offset } = besidePinned(window, pinned)
  let next = window.offset - before - offset
  const rows: HitRow[] = []
  for (let place = window.offset; place < Math.min(window.offset + window.limit, found); place++) {
    const seq = places.get(place)
    const row = seq === undefined ? others.rows[next++] : pinnedRow(seq)
    if (row !== undefined) rows.push(row)
  }
  return { rows, found }
}

export const pinnedRow = (seq: number): HitRow => ({
  seq,
  score: null,
  distance: null,
  fused: null,
  curated: true,
})

/** The matches and the pinned documents together, for facets. */
export function includingPinned(candidates: Candidates, pinned: readonly Pinned[]): Candidates {
  if (pinned.length === 0) return candidates
  const seqs = pinned.map(({ seq }) => seq)
  return {
    ...candidates,
    found: undefined,
    set: once(async (pace) => withSeqs(await candidates.set(pace), seqs)),
  }
}
