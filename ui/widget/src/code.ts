/**
 * Colours of code, loaded when an answer has a block in a language that is known, and its grammar after it. Colours are
 * names of classes: a page's policy may forbid styles in elements.
 */
import {
  codeToTokensBase,
  createCssVariablesTheme,
  createShikiPrimitive,
  type LanguageRegistration,
  type ShikiPrimitive,
} from 'shiki/core'
import { createJavaScriptRegexEngine } from 'shiki/engine/javascript'
import type grammars from './grammars.json'

/** The name of a grammar. */
export type Grammar = keyof typeof grammars

/** A piece of code, and what it is: `keyword`, `string` ... */
export interface Piece {
  text: string
  kind?: string
}

/** Longer code stays as it is: nobody is to wait for it. */
const LONGEST = 20_000
const LONGEST_LINE = 1_000

let shiki: ShikiPrimitive | undefined

/** @param load fetches a grammar. @returns the code in pieces; undefined for code that is too long */
export async function piecesOf(
  text: string,
  grammar: Grammar,
  load: (grammar: Grammar) => Promise<LanguageRegistration[]>,
): Promise<Piece[] | undefined> {
  if (text.length > LONGEST) return undefined
  shiki ??= createShikiPrimitive({
    themes: [createCssVariablesTheme({ name: 'parley', variablePrefix: '--' })],
    langs: [],
    engine: createJavaScriptRegexEngine({ forgiving: true }),
  })
  if (!shiki.getLoadedLanguages().includes(grammar)) shiki.loadLanguageSync(await load(grammar))
  const lines = codeToTokensBase(shiki, text, {
    lang: grammar,
    theme: 'parley',
    tokenizeMaxLineLength: LONGEST_LINE,
  })
  return lines.flatMap((line, index) => [
    ...(index > 0 ? [{ text: '\n' }] : []),
    ...line.map(({ content, color }): Piece => {
      const kind = /^var\(--token-([a-z-]+)\)$/.exec(color ?? '')?.[1]
      return { text: content, ...(kind !== undefined && { kind }) }
    }),
  ])
}

;(globalThis as Record<symbol, unknown>)[Symbol.for('parley-chat.code')] = { piecesOf } satisfies Code

export interface Code {
  piecesOf: typeof piecesOf
}
