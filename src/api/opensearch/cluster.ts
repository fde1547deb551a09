/** Cluster routes: `GET /`, the cluster's health and settings, and the list of indices. */

import { namesOf } from '../../lib/nearest'
import type { CollectionSummary } from '../../search/types'
import type { Call } from '../http/router'
import { unsupported } from './errors'
import { resolve } from './indices'
import type { Json } from './route'

/** The OpenSearch release whose wire this is. Clients choose their requests by it. */
const VERSION = '2.19.1'
const NAME = 'parley'

export const info = (): Json => ({
  name: NAME,
  cluster_name: NAME,
  cluster_uuid: NAME,
  version: {
    distribution: 'opensearch',
    number: VERSION,
    build_type: 'worker',
    build_hash: 'unknown',
    build_date: '2025-02-27T00:00:00Z',
    build_snapshot: false,
    lucene_version: '9.12.1',
    minimum_wire_compatibility_version: '7.10.0',
    minimum_index_compatibility_version: '7.0.0',
  },
  tagline: 'The OpenSearch Project: https://opensearch.org/',
})

/** Numbers of what is never under way. */
const NEVER = namesOf(`
  relocating_shards initializing_shards unassigned_shards delayed_unassigned_shards
  number_of_pending_tasks number_of_in_flight_fetch task_max_waiting_in_queue_millis
`)

export async function health(call: Call): Promise<Json> {
  const indices = await resolve(call, call.path.collection, 'collections:list')
  return {
    cluster_name: NAME,
    status: 'green',
    timed_out: false,
    number_of_nodes: 1,
    number_of_data_nodes: 1,
    discovered_master: true,
    discovered_cluster_manager: true,
    active_primary_shards: indices.length,
    active_shards: indices.length,
    ...Object.fromEntries(NEVER.map((name) => [name, 0])),
    active_shards_percent_as_number: 100,
  }
}

/** The cells of an index, by their columns. Sizes are unknown because collections do not report them. */
const COLUMNS: Record<string, (index: CollectionSummary) => string | null> = {
  health: () => 'green',
  status: () => 'open',
  index: ({ name }) => name,
  uuid: ({ name }) => name,
  pri: () => '1',
  rep: () => '0',
  'docs.count': ({ num_documents }) => String(num_documents),
  'docs.deleted': () => '0',
  'store.size': () => null,
  'pri.store.size': () => null,
}

/** GET /_cat/indices: a table, or JSON. */
export async function catIndices(call: Call): Promise<unknown> {
  const { path, query } = call
  const wanted = query.h === undefined ? Object.keys(COLUMNS) : query.h.split(',')
  const unknown = wanted.find((name) => !Object.hasOwn(COLUMNS, name))
  if (unknown !== undefined) throw unsupported(`The column [${unknown}]`)
  const indices = await resolve(call, path.index, 'collections:list')
  const rows = indices.map((index) => wanted.map((column) => [column, COLUMNS[column]!(index)] as const))
  if (query.s !== undefined) sort(rows, query.s)
  if (query.format === 'json') return rows.map((row) => Object.fromEntries(row))
  if (query.format !== undefined && query.format !== 'text') throw unsupported(`[format: ${query.format}]`)
  const lines = rows.map((row) => row.map(([, value]) => value ?? ''))
  return new Response(table(query.v === undefined || query.v === 'false' ? lines : [wanted, ...lines]), {
    headers: { 'content-type': 'text/plain; charset=UTF-8' },
  })
}

type Row = (readonly [column: string, value: string | null])[]

function sort(rows: Row[], by: string): void {
  const [name, direction = 'asc'] = by.split(':')
  const sign = direction === 'desc' ? -1 : 1
  const cellOf = (row: Row): string => row.find(([column]) => column === name)?.[1] ?? ''
  if (!Object.hasOwn(COLUMNS, name!)) throw unsupported(`A table sorted by [${by}]`)
  rows.sort((a, b) => sign * cellOf(a).localeCompare(cellOf(b), 'en', { numeric: true }))
}

function table(lines: string[][]): string {
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map((line) => line[column]!.length)))
  return lines
    .map(
      (line) =>
        `${line
          .map((cell, column) => cell.padEnd(widths[column]!))
          .join(' ')
          .trimEnd()}\n`,
    )
    .join('')
}
