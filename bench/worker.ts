/**
 * Parley as it is, with the baselines in the same Worker: raw inserts and raw FTS5 queries in a Durable
 * Object, and a relay that only copies bytes.
 */
import { DurableObject } from 'cloudflare:workers'
import parley from '../src/index'
import { Collection as ParleyCollection } from '../src/search/collection/object'
import { scalarColumn } from '../src/search/schema/layout'
import { readSchema } from '../src/search/schema/plan'
import { TOKENIZER } from '../src/search/text/analyzer'
import { makeDocument } from './documents.mjs'

export { AgentSocket } from '../src/api/ui-stream/agent-socket'
export { Conversation } from '../src/conversation/conversation'

/** What a statement has read since its object woke. */
interface Statement {
  text: string
  cursors: SqlStorageCursor<Record<string, SqlStorageValue>>[]
  rows: number
}

/** Rows of cursors that are read to their end: they may go. */
function settle(statement: Statement): void {
  for (const { rowsRead } of statement.cursors) statement.rows += rowsRead
  statement.cursors = []
}

/** The state of an object, which notes what its statements read. */
function noting(ctx: DurableObjectState, statements: Map<string, Statement>): DurableObjectState {
  const { sql } = ctx.storage
  const exec = sql.exec.bind(sql)
  sql.exec = ((text: string, ...bindings: SqlStorageValue[]) => {
    const statement = statements.get(text) ?? { text, cursors: [], rows: 0 }
    statements.set(text, statement)
    // The latest one may not be read yet.
    if (statement.cursors.length > 100) settle(statement)
    const cursor = exec(text, ...bindings)
    statement.cursors.push(cursor)
    return cursor
  }) as typeof sql.exec
  return ctx
}

/** Parley's Collection with one door more: the bare FTS5 query over the very index that searches use. */
export class Collection extends ParleyCollection {
  readonly #statements: Map<string, Statement>

  constructor(ctx: DurableObjectState, env: Cloudflare.Env) {
    const statements = new Map<string, Statement>()
    super(noting(ctx, statements), env)
    this.#statements = statements
  }

  /** The rows that SQLite has read since the object woke, and the statements that read most of them. */
  reads(): { rows: number; statements: [rows: number, text: string][] } {
    const all = [...this.#statements.values()]
    for (const statement of all) settle(statement)
    all.sort((a, b) => b.rows - a.rows)
    return {
      rows: all.reduce((sum, { rows }) => sum + rows, 0),
      statements: all.slice(0, 8).map(({ rows, text }) => [rows, text]),
    }
  }

  rawQuery(match: string): number {
    return this.ctx.storage.sql
      .exec('SELECT rowid FROM word_index WHERE word_index MATCH ? ORDER BY rank LIMIT 10', match)
      .toArray().length
  }

  /** Runs each query once inside the object, so that the clock outside sees queries and no hops. */
  rawQueries(matches: string[]): number {
    let rows = 0
    for (const match of matches) rows += this.rawQuery(match)
    return rows
  }

  /** Runs one statement and reads all of its rows. @returns how many they are */
  rawSql([statement, ...bindings]: [string, ...SqlStorageValue[]]): number {
    return this.ctx.storage.sql.exec(statement, ...bindings).toArray().length
  }

  /** The columns of fields with one value, by the fields' names. */
  columnNames(): Record<string, string> {
    const { slots } = readSchema(this.ctx.storage.sql)!
    return Object.fromEntries(Object.entries(slots).map(([name, slot]) => [name, scalarColumn(slot)]))
  }

  async searches(queries: string[]): Promise<number> {
    let hits = 0
    for (const q of queries) {
      const outcome = await this.search({
        q,
        query_by: 'title,text',
        prefix: 'false',
        drop_tokens_threshold: '0',
      })
      if (!outcome.ok) throw new Error(outcome.error.message)
      hits += outcome.value.hits?.length ?? 0
    }
    return hits
  }
}

interface Doc {
  id: string
  title: string
  text: string
}

/** The least that stores documents and makes them searchable: one row and one index entry each. */
export class Raw extends DurableObject {
  #documents: Doc[] = []
  #seq = 0

  prepare(from: number, count: number): void {
    this.ctx.storage.sql.exec(`
      CREATE TABLE IF NOT EXISTS documents (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, body TEXT NOT NULL);
      CREATE VIRTUAL TABLE IF NOT EXISTS text_index
        USING fts5(t0, t1, content='', contentless_delete=1, tokenize='${TOKENIZER}');
    `)
    this.#documents = Array.from({ length: count }, (_, i) => makeDocument(from + i))
    // workerd may have evicted the object since the last round.
    const { sql } = this.ctx.storage
    this.#seq = sql.exec<{ seq: number }>('SELECT coalesce(max(seq), 0) AS seq FROM documents').one().seq
  }

  /** One transaction a call, as an import batch is. */
  insert(start: number, count: number): void {
    const { sql } = this.ctx.storage
    this.ctx.storage.transactionSync(() => {
      for (const document of this.#documents.slice(start, start + count)) {
        const seq = ++this.#seq
        sql.exec('INSERT INTO documents VALUES (?, ?, ?)', seq, document.id, JSON.stringify(document))
        sql.exec(
          'INSERT INTO text_index (rowid, t0, t1) VALUES (?, ?, ?)',
          seq,
          document.title,
          document.text,
        )
      }
    })
  }
}

interface BenchEnv extends Cloudflare.Env {
  RAW: DurableObjectNamespace<Raw>
}

const objectIds = new Map<string, string>()

// Remembered, as Parley's own catalog remembers names: a baseline must not pay for D1 at every call.
const collection = async (env: Cloudflare.Env, name: string): Promise<Collection> => {
  const namespace = env.COLLECTION as DurableObjectNamespace
  const known = objectIds.get(name)
  if (known) return namespace.get(namespace.idFromName(known)) as unknown as Collection
  const row = await env.DB.prepare('SELECT object_id FROM collections WHERE name = ?')
    .bind(name)
    .first<{ object_id: string }>()
  if (!row) throw new Error(`no collection ${name}`)
  objectIds.set(name, row.object_id)
  return namespace.get(namespace.idFromName(row.object_id)) as unknown as Collection
}

/** Copies the upstream's bytes through JavaScript, one write a read: what the least relay costs. */
async function relay(url: string): Promise<Response> {
  const upstream = await fetch(url, { method: 'POST', body: '{"stream":true}' })
  const { readable, writable } = new TransformStream<Uint8Array>()
  const writer = writable.getWriter()
  const pump = async () => {
    for await (const bytes of upstream.body!) await writer.write(bytes)
    await writer.close()
  }
  void pump()
  return new Response(readable, { headers: { 'content-type': 'text/event-stream' } })
}

export default {
  ...parley,
  async fetch(request: Request, env: BenchEnv, ctx: ExecutionContext): Promise<Response> {
    const url = new URL(request.url)
    if (!url.pathname.startsWith('/__bench/')) {
      return parley.fetch!(request as Parameters<NonNullable<typeof parley.fetch>>[0], env, ctx)
    }
    const number = (name: string) => Number(url.searchParams.get(name))
    switch (url.pathname) {
      case '/__bench/raw/prepare':
        await env.RAW.getByName('raw').prepare(number('from'), number('count'))
        return new Response('ok')
      case '/__bench/raw/insert': {
        // Driven from here in batches, so that both sides pay an RPC and a commit a batch.
        const raw = env.RAW.getByName('raw')
        const batch = number('batch')
        for (let start = 0; start < number('count'); start += batch) await raw.insert(start, batch)
        return new Response('ok')
      }
      case '/__bench/raw/query': {
        const target = await collection(env, url.searchParams.get('collection')!)
        return Response.json(await target.rawQuery(url.searchParams.get('match')!))
      }
      case '/__bench/raw/queries': {
        const target = await collection(env, url.searchParams.get('collection')!)
        return Response.json(await target.rawQueries(await request.json<string[]>()))
      }
      case '/__bench/sql': {
        const target = await collection(env, url.searchParams.get('collection')!)
        return Response.json(await target.rawSql(await request.json<[string, ...SqlStorageValue[]]>()))
      }
      case '/__bench/reads': {
        const target = await collection(env, url.searchParams.get('collection')!)
        return Response.json(await target.reads())
      }
      case '/__bench/columns': {
        const target = await collection(env, url.searchParams.get('collection')!)
        return Response.json(await target.columnNames())
      }
      case '/__bench/searches': {
        const target = await collection(env, url.searchParams.get('collection')!)
        return Response.json(await target.searches(await request.json<string[]>()))
      }
      case '/__bench/relay':
        return relay(url.searchParams.get('url')!)
      default:
        return new Response('no such benchmark', { status: 404 })
    }
  },
  scheduled: parley.scheduled,
} satisfies ExportedHandler<BenchEnv>
