/** Writes the full-text entries of documents: the text of each searched field, in the form of the index. */

import type { FieldSlot, StoredSchema } from '../schema/layout'
import type { Plan } from '../schema/plan'
import {
  addInfixWords,
  clearInfixIndex,
  isShared,
  PRESENT,
  sharedText,
  type TextTables,
  textCode,
  textColumn,
} from '../schema/tables'
import { analyzerOf, STEMS, type TextIndex, WORDS } from '../text/analyzer'
import { rulesOf } from '../text/rules'
import { TERMS, Terms } from '../text/terms'
import type { Draft } from './document'
import { stored, textOf } from './rows'

/** A text for each searched field of the plan; undefined where the document has none. */
export type Texts = readonly (string | undefined)[]

export const isSameText = (texts: Texts, others: Texts): boolean =>
  texts.every((text, number) => text === others[number])

const hasText = (texts: Texts): boolean => texts.some((text) => text !== undefined)

/** The index entries of a document. */
export interface TextEntry {
  seq: number
  /** texts by column, in the form of each index; undefined if the document has no text */
  columns: { stems: (string | null)[]; words: (string | null)[] } | undefined
  infixes: [FieldSlot, string[]][]
}

/**
 * The full-text indexes of one version of a schema.
 *
 * Entries are buffered until `flush`, which writes one index after the other. Writing each document's entries at once
 * would be slow: a statement with a list of values opens a savepoint, and then FTS5 writes a segment for the few
 * documents that it has in memory.
 */
export class TextEntries {
  readonly #sql: SqlStorage
  readonly #schema: StoredSchema
  readonly #plan: Plan
  readonly #terms: Terms
  /** each column, and the numbers of its texts */
  readonly #columns: [column: string, texts: number[]][]
  // Their texts never change, so SQLite compiles them once.
  readonly #insertStems: string
  readonly #insertWords: string
  readonly tables: TextTables
  #waiting: { entry: TextEntry; isNew: boolean }[] = []

  constructor(sql: SqlStorage, schema: StoredSchema, plan: Plan, tables = PRESENT) {
    this.#sql = sql
    this.#schema = schema
    this.#plan = plan
    this.tables = tables
    this.#terms = new Terms(sql)
    this.#columns = [...Map.groupBy(plan.text.keys(), (number) => textColumn(plan.text[number]!.slot!))]
    const columns = this.#columns.map(([column]) => column)
    const into = ({ table }: TextIndex): string =>
      `INSERT INTO ${tables[table]} (rowid, ${columns.join(', ')}) VALUES (?, ${columns.map(() => '?').join(', ')})`
    this.#insertStems = into(STEMS)
    this.#insertWords = into(WORDS)
  }

  texts(draft: Draft): Texts {
    return this.#plan.text.map((field) => textOf(field, draft))
  }

  /**
   * Computes the index entries of a document.
   * @param isNew it is not in the indexes yet
   * @returns buffers the entries for the next `flush`
   * @throws ApiError 400 when a text is too long for a row
   */
  prepare(seq: number, texts: Texts, isNew: boolean): () => void {
    const entry = this.#entry(seq, texts)
    return () => void this.#waiting.push({ entry, isNew })
  }

  #entry(seq: number, texts: Texts): TextEntry {
    if (!hasText(texts)) return { seq, columns: undefined, infixes: [] }
    const columns = { stems: this.#prepared(STEMS, texts), words: this.#prepared(WORDS, texts) }
    return { seq, columns, infixes: this.#infixWords(texts) }
  }

  /**
   * Writes the buffer. Call it in the transaction of the documents.
   * @returns how many entries it replaced; undefined if there was nothing
   */
  flush(): number | undefined {
    const waiting = this.#waiting
    if (waiting.length === 0) return undefined
    this.#waiting = []
    const infixes = Map.groupBy(
      waiting.flatMap(({ entry }) => entry.infixes),
      ([slot]) => slot,
    )
    for (const [slot, found] of infixes) {
      addInfixWords(
        this.#sql,
        slot,
        found.flatMap(([, words]) => words),
      )
    }
    for (const { table } of [STEMS, WORDS]) {
      const insert = table === STEMS.table ? this.#insertStems : this.#insertWords
      for (const { entry, isNew } of waiting) {
        if (!isNew) this.#sql.exec(`DELETE FROM ${this.tables[table]} WHERE rowid = ?`, entry.seq)
        if (entry.columns === undefined) continue
        const texts = table === STEMS.table ? entry.columns.stems : entry.columns.words
        this.#sql.exec(insert, entry.seq, ...texts)
      }
    }
    this.#terms.add(waiting.flatMap(({ entry }) => entry.columns?.words ?? []))
    return waiting.filter(({ isNew }) => !isNew).length
  }

  /** Discards the buffer, after a rollback. */
  discard(): void {
    this.#waiting = []
  }

  remove(seq: number): void {
    this.flush()
    for (const table of Object.values(this.tables))
      this.#sql.exec(`DELETE FROM ${table} WHERE rowid = ?`, seq)
  }

  clear(): void {
    this.#waiting = []
    for (const table of Object.values(this.tables)) {
      this.#sql.exec(`INSERT INTO ${table} (${table}) VALUES ('delete-all')`)
    }
    this.#sql.exec(`DELETE FROM ${TERMS}`)
    this.#terms.reset()
    for (const { slot } of this.#plan.text) if (slot?.infix) clearInfixIndex(this.#sql, slot)
  }

  #prepared(index: TextIndex, texts: Texts): (string | null)[] {
    return this.#columns.map(([column, numbers]) => {
      const found = numbers.flatMap((number) => {
        const text = texts[number]
        if (text === undefined) return []
        const { field, slot } = this.#plan.text[number]!
        return [{ text, code: textCode(slot!), analyzer: analyzerOf(index, rulesOf(this.#schema, field)) }]
      })
      const [first] = found
      if (first === undefined) return null
      return stored(isShared(column) ? sharedText(found) : first.analyzer.prepare(first.text))
    })
  }

  #infixWords(texts: Texts): [FieldSlot, string[]][] {
    return this.#plan.text.flatMap(({ slot, field }, number): [FieldSlot, string[]][] => {
      const text = texts[number]
      if (!slot?.infix || text === undefined) return []
      const words = analyzerOf(WORDS, rulesOf(this.#schema, field)).tokenize(text)
      return [[slot, words.map((word) => word.text)]]
    })
  }
}
