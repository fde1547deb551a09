/** Markdown as blocks: marked reads it, with formulas and footnotes. It needs no page. */
import { Marked, type Token, type TokenizerAndRendererExtension, type TokensList } from 'marked'
import type { Grammar } from './code'
import grammars from './grammars.json'

const escaped = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)

const BREAK = /^<br\s*\/?>\s*$/i

/** TeX stays as it is written: nothing of it is Markdown. Money is none: `$5 and $10`. */
const FORMULA = /^(?:\\\((.{1,500}?)\\\)|\$(?=[^$\n]{0,500}?[\\^_=])(?!\s)([^$\n]{1,500}?)(?<!\s)\$(?![\w$]))/
const FORMULAS = /^(?:\$\$([^$]{1,4000}?)\$\$|\\\[([\s\S]{1,4000}?)\\\])[ \t]*(?:\n|$)/
const NOTE = /^\[\^([^\]\s]{1,40})\]/
const NOTE_TEXT = /^\[\^([^\]\s]{1,40})\]:[ \t]+([^\n]+(?:\n(?!\s*\n|\[\^)[^\n]+)*)(?:\n|$)/

const extensions: TokenizerAndRendererExtension[] = [
  {
    name: 'formula',
    level: 'inline',
    start: (text) => text.search(/\\\(|\$/),
    tokenizer(text) {
      const [raw, round, between] = FORMULA.exec(text) ?? []
      return raw === undefined ? undefined : { type: 'codespan', raw, text: (round ?? between ?? '').trim() }
    },
  },
  {
    name: 'formulas',
    level: 'block',
    start: (text) => text.search(/^(?:\$\$|\\\[)/m),
    tokenizer(text) {
      const [raw, dollars, brackets] = FORMULAS.exec(text) ?? []
      return raw === undefined
        ? undefined
        : { type: 'code', raw, text: (dollars ?? brackets ?? '').trim(), lang: 'tex' }
    },
  },
  {
    name: 'note',
    level: 'inline',
    start: (text) => text.indexOf('[^'),
    tokenizer(text) {
      const [raw, name] = NOTE.exec(text) ?? []
      return raw === undefined ? undefined : { type: 'note', raw, text: name }
    },
    renderer: ({ text }) => `<sup>${escaped(String(text))}</sup>`,
  },
  {
    name: 'noteText',
    level: 'block',
    start: (text) => text.search(/^\[\^/m),
    tokenizer(text) {
      const [raw, name, said] = NOTE_TEXT.exec(text) ?? []
      if (raw === undefined) return undefined
      return { type: 'noteText', raw, text: name, tokens: this.lexer.inlineTokens(said ?? '') }
    },
    renderer({ text, tokens = [] }) {
      return `<p><sup>${escaped(String(text))}</sup> ${this.parser.parseInline(tokens)}</p>`
    },
  },
]

export const marked = new Marked({
  extensions,
  gfm: true,
  renderer: {
    // Below the headings of the widget itself.
    heading({ tokens, depth }) {
      const level = Math.min(6, depth + 3)
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>`
    },
    html: ({ text }) => (BREAK.test(text) ? '<br>' : escaped(text)),
    image: ({ href, text }) => `<a href="${escaped(href)}">${escaped(text || href)}</a>`,
    checkbox: ({ checked }) => (checked ? '☑ ' : '☐ '),
    // Code within a list or a quotation says its language, too.
    code: ({ text, lang }) => `<pre data-language="${escaped(languageOf(lang))}">${escaped(text)}</pre>`,
  },
})

export interface Block {
  type: string
  raw: string
  /** of a block of code: what it holds, and in which language */
  code?: { text: string; language: string }
  token: Token
}

const languageOf = (lang = ''): string => /^[\w+#.-]{1,20}/.exec(lang)?.[0] ?? ''

const NAMES = new Map(
  Object.entries(grammars).flatMap(([grammar, names]) =>
    [grammar, ...names].map((name) => [name, grammar as Grammar]),
  ),
)

/** The grammar of a language; undefined where none is known. */
export const grammarOf = (language: string): Grammar | undefined => NAMES.get(language.toLowerCase())

/** The blocks of a text, those of blanks among them. Their `raw` joined is the text. */
export function lex(text: string): { blocks: Block[]; links: TokensList['links'] } {
  const tokens = marked.lexer(text)
  const blocks = tokens.map((token) => ({
    type: token.type,
    raw: token.raw,
    token,
    ...(token.type === 'code' && {
      code: { text: String(token.text), language: languageOf(token.lang) },
    }),
  }))
  return { blocks, links: tokens.links }
}
