import { env } from 'cloudflare:test'
import type { Database } from '../../src/db/client'

/** A database, with the statements that were run on it and the rows that it read for them. */
export function watched() {
  const seen = { statements: [] as [text: string, ...values: unknown[]][], read: 0 }
  const db: Pick<Database, 'prepare'> = {
    prepare: (text) =>
      ({
        bind: (...values: unknown[]) => ({
          async all() {
            seen.statements.push([text, ...values])
            const result = await env.DB.prepare(text)
              .bind(...values)
              .all()
            seen.read += result.meta.rows_read
            return result
          },
        }),
      }) as unknown as D1PreparedStatement,
  }
  return { db: db as Database, seen }
}
