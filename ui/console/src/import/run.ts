/** An import in its steps: read, compare with what is there, send. The steps are the command line's own. */
import {
  addContent,
  asDocuments,
  leaveOutCopies,
  leaveOutUnindexed,
  newRead,
  type Read,
  tablesAsPages,
} from '../../../../scripts/parley/import/documents.mjs'
import {
  type Document,
  type Plan,
  planImport,
  sourcesOf,
  storedBy,
} from '../../../../scripts/parley/import/plan.mjs'
import {
  collectionOf,
  type Field,
  PAGE,
  SOURCE,
  storedTypes,
} from '../../../../scripts/parley/import/schema.mjs'
import { type Rejected, removeDocuments, sendDocuments } from '../../../../scripts/parley/import/send.mjs'
import { readContent } from '../../../../scripts/parley/read/index.mjs'
import { languageOf } from '../../../../src/lib/grammar'
import { server } from '../api'
import type { Chosen } from './files'

export const EMBEDDING = 'ts/all-MiniLM-L12-v2'

export interface Prepared {
  read: Read
  plan: Plan
  documents: Document[]
  fields: Field[]
  /** whether the collection is there already */
  exists: boolean
}

/** What the files hold. */
interface Gathered {
  read: Read
  /** data that is left out beside pages: rows and pages have no fields in common */
  leftOut: string[]
  /** pages that redirect, or ask not to be indexed */
  unindexed: string[]
}

/** Reads files, and says at each how far it is. What cannot be read is in `unread`. */
export async function readFiles({ files }: Chosen, onRead: (count: number) => void): Promise<Gathered> {
  const read = newRead()
  for (const [at, { name, source, file }] of files.entries()) {
    const id = name === source ? name : `${source}/${name}`
    try {
      const content = await readContent(new Uint8Array(await file.arrayBuffer()), name)
      addContent(read, { id, name, source }, content)
    } catch (error) {
      read.unread.push({ source: name, error: error instanceof Error ? error.message : String(error) })
    }
    onRead(at + 1)
    // The page is drawn between two files.
    if (at % 10 === 9) await new Promise((resolve) => setTimeout(resolve))
  }
  leaveOutCopies(read)
  const unindexed = leaveOutUnindexed(read)
  const leftOut = tablesAsPages(read)
  read.complete = read.unread.length === 0
  return { read, unindexed, leftOut }
}

/** Compares what was read with what earlier imports of the same source left. @throws Refusal */
export async function prepare({ read }: Gathered, collection: string, embedding: string): Promise<Prepared> {
  const present = await server.find(`/collections/${encodeURIComponent(collection)}`)
  const has = (field: string) => present?.fields?.some(({ name }) => name === field) ?? false
  // A collection that no import has made has no list of what one left.
  const isOurs = has(SOURCE)
  const { fields, documents } = await asDocuments(read, {
    embedding,
    languageOf,
    types: storedTypes(present?.fields),
    // What an import with --whole left stays as it is.
    whole: isOurs && !has(PAGE),
  })
  const stored = isOurs ? await storedBy(server as never, collection, sourcesOf(documents)) : new Map()
  const plan = planImport(documents, stored)
  // What could not be read today may still be there: only what is known to be gone is removed.
  if (!read.complete) plan.gone = []
  return { read, plan, documents, fields, exists: present !== undefined }
}

/** Makes the collection where there is none, and sends what is new. @returns what the server refused */
export async function send(
  { plan, fields, exists }: Prepared,
  collection: string,
  prune: boolean,
  onSent: (count: number) => void,
): Promise<Rejected[]> {
  if (!exists) await server.call('POST', '/collections', { body: collectionOf(collection, fields) })
  const rejected = await sendDocuments(server as never, collection, plan, onSent)
  const ended = [...plan.former, ...(prune ? plan.gone : [])]
  if (ended.length > 0) await removeDocuments(server as never, collection, ended)
  return rejected
}
