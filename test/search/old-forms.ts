/** Normal forms as versions before text/compared.ts wrote them: signs part words, and more letters keep their marks. */
import { beginNormFilling } from '../../src/search/collection/norm-filling'
import { storedValues } from '../../src/search/filter/columns'
import { hasValues, isArray, isString } from '../../src/search/schema/layout'
import { readSchema } from '../../src/search/schema/stored'
import { rulesOf } from '../../src/search/text/rules'
import { tokenize } from '../../src/search/text/words'

/**
 * Writes old forms, and begins to write the new ones.
 * @param from the first document with old forms; those before it keep the new ones
 */
export function putOldForms(sql: SqlStorage, from = 0): void {
  const schema = readSchema(sql)!
  for (const field of schema.fields) {
    if (!isString(field) || !hasValues(field)) continue
    const { table, columns } = storedValues(schema, field)
    const pos = isArray(field) ? 'pos' : '0'
    const rows = sql
      .exec<{ seq: number; pos: number; value: string }>(
        `SELECT seq, ${pos} AS pos, ${columns.value} AS value FROM ${table} c WHERE value IS NOT NULL AND seq >= ?`,
        from,
      )
      .toArray()
    for (const { seq, pos: at, value } of rows) {
      const words = tokenize(value, rulesOf(schema, field)).map(({ text }) => text)
      const norm = columns.norm.slice(2)
      sql.exec(`UPDATE ${table} SET ${norm} = ? WHERE seq = ? AND ${pos} = ?`, words.join(' '), seq, at)
    }
  }
  beginNormFilling(sql)
}
