/** Writes what the full-text indexes have of a document: the text of each searched field, as the index takes it. */
import { addInfixWords, clearInfixIndex } from '../schema/infix-index'
import type { FieldSlot, StoredSchema } from '../schema/layout'
import type { Plan } from '../schema/plan'
import { isShared, sharedText, textCode, textColumn } from '../schema/shared-column'
import { analyzerOf, STEMS, type TextIndex, WORDS } from '../text/analyzer'
import { rulesOf } from '../text/rules'
import { TERMS, Terms } from '../text/terms'
import type { Draft } from './document'
import { textOf } from './index-entries'
import { stored } from './rows'

/** A text for each searched field of the plan; undefined where the document has none. */
export type Texts = readonly (string | undefined)[]

export const textsOf = (plan: Plan, draft: Draft): Texts => plan.text.map((field) => textOf(field, draft))

export const isSameText = (texts: Texts, others: Texts): boolean =>
  texts.every((text, number) => text === others[number])

const hasText = (texts: Texts): boolean => texts.some((text) => text !== undefined)

/** The full-text indexes of one version of a schema. */
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

  constructor(sql: SqlStorage, schema: StoredSchema, plan: Plan) {
    this.#sql = sql
    this.#schema = schema
    this.#plan = plan
    this.#terms = new Terms(sql)
    this.#columns = [...Map.groupBy(plan.text.keys(), (number) => textColumn(plan.text[number]!.slot!))]
    const columns = this.#columns.map(([column]) => column)
    const into = ({ table }: TextIndex): string =>
      `INSERT INTO ${table} (rowid, ${columns.join(', ')}) VALUES (?, ${columns.map(() => '?').join(', ')})`
    this.#insertStems = into(STEMS)
    this.#insertWords = into(WORDS)
  }

  /**
   * Computes what the indexes get of a document.
   * @returns a function that writes it. The document must not be in the indexes then
   * @throws ApiError 400 when a text is too long for a row
   */
  indexing(seq: number, texts: Texts): () => void {
    if (!hasText(texts)) return () => {}
    const stems = this.#prepared(STEMS, texts)
    const words = this.#prepared(WORDS, texts)
    const infixes = this.#infixWords(texts)
    return () => {
      this.#sql.exec(this.#insertStems, seq, ...stems)
      this.#sql.exec(this.#insertWords, seq, ...words)
      this.#terms.add(words)
      for (const [slot, found] of infixes) addInfixWords(this.#sql, slot, found)
    }
  }

  /** Puts a document into the index of words alone: for a collection that is older than this index. */
  indexWords(seq: number, texts: Texts): void {
    this.#sql.exec(`DELETE FROM ${WORDS.table} WHERE rowid = ?`, seq)
    if (!hasText(texts)) return
    const words = this.#prepared(WORDS, texts)
    this.#sql.exec(this.#insertWords, seq, ...words)
    this.#terms.add(words)
  }

  remove(seq: number): void {
    for (const { table } of [STEMS, WORDS]) this.#sql.exec(`DELETE FROM ${table} WHERE rowid = ?`, seq)
  }

  clear(): void {
    for (const { table } of [STEMS, WORDS]) {
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
