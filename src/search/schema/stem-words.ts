/**
 * Stemming dictionaries of fields. A field copies the words of its dictionary when it is created, and keeps that
 * copy: its index holds roots, so queries must use the same words as the indexed documents. Each list of words is a
 * row of `meta`, named by a hash of its content, and fields name that row in `stem_words`.
 */
import * as v from 'valibot'
import { database } from '../../db/client'
import { detailed } from '../../errors'
import { hasMeta, readMeta, writeMeta } from '../meta'
import { stemmingDictionaries } from '../text/dictionaries'
import { dictionaryOf, holdDictionary } from '../text/stemmers'
import type { Field } from '../types'

/**
 * Adds the words of dictionaries to fields, and loads these words into memory.
 * @throws ApiError 404 for a dictionary that does not exist
 */
export const takeStemWords = (fields: Field[], env: Cloudflare.Env): Promise<Field[]> =>
  Promise.all(
    fields.map(async (field) => {
      const { stem_dictionary: name } = field
      if (name === '') return field
      const words = await stemmingDictionaries.find(database(env), name)
      if (words === undefined) {
        throw detailed(
          404,
          `Stemming dictionary \`${name}\` not found.`,
          `Import it before the field \`${field.name}\` is made.`,
        )
      }
      const key = `stem_words ${await hashOf(JSON.stringify([...words]))}`
      holdDictionary(key, words)
      return { ...field, stem_words: key }
    }),
  )

async function hashOf(text: string): Promise<string> {
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
  return [...new Uint8Array(hash)].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Stores the words of a field that is added to the schema. */
export function keepStemWords(sql: SqlStorage, { stem_words: key }: Field): void {
  if (key === undefined || hasMeta(sql, key)) return
  const words = dictionaryOf(key)
  if (words !== undefined) writeMeta(sql, key, [...words])
}

/** Deletes the words of a field, if no other field has them. */
export function dropStemWords(sql: SqlStorage, { stem_words: key }: Field, others: readonly Field[]): void {
  if (key !== undefined && !others.some(({ stem_words: other }) => other === key)) {
    writeMeta(sql, key, undefined)
  }
}

/** Reads the words of all fields into memory. */
export function loadStemWords(sql: SqlStorage, fields: readonly Field[]): void {
  for (const key of new Set(fields.flatMap(({ stem_words: key }) => key ?? []))) {
    if (dictionaryOf(key) !== undefined) continue
    holdDictionary(key, new Map(readMeta(sql, key, v.array(v.tuple([v.string(), v.string()]))) ?? []))
  }
}
