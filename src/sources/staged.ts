/** Files of an archive that wait in the source's object until they are read. */

/** Bytes of a row: SQLite in an object holds 2 MB in one. */
const PART = 1 << 20

export class Staged {
  readonly #sql: SqlStorage

  constructor(sql: SqlStorage) {
    this.#sql = sql
    sql.exec(
      'CREATE TABLE IF NOT EXISTS staged (path TEXT, part INTEGER, bytes BLOB, PRIMARY KEY (path, part))',
    )
  }

  clear(): void {
    this.#sql.exec('DELETE FROM staged')
  }

  put(path: string, bytes: Uint8Array): void {
    for (let part = 0; part === 0 || part * PART < bytes.length; part += 1) {
      const some = bytes.slice(part * PART, (part + 1) * PART)
      this.#sql.exec('INSERT INTO staged VALUES (?, ?, ?)', path, part, some.buffer)
    }
  }

  /** A file that waits, which does so no more. */
  take(path: string): Uint8Array | undefined {
    const rows = this.#sql.exec<{ bytes: ArrayBuffer }>(
      'SELECT bytes FROM staged WHERE path = ? ORDER BY part',
      path,
    )
    const parts = rows.toArray().map(({ bytes }) => new Uint8Array(bytes))
    if (parts.length === 0) return undefined
    this.#sql.exec('DELETE FROM staged WHERE path = ?', path)
    const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
    let at = 0
    for (const part of parts) {
      whole.set(part, at)
      at += part.length
    }
    return whole
  }
}
