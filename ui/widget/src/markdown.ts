/**
 * Markdown, loaded when the first answer is near: marked reads it, DOMPurify keeps what it makes to a few harmless
 * elements. HTML that the model writes is shown as text, but for line breaks; images become links.
 */
import DOMPurify from 'dompurify'
import { Marked, type Token, type TokensList } from 'marked'

const escaped = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)

const BREAK = /^<br\s*\/?>\s*$/i

const marked = new Marked({
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
  },
})

const CLEAN = {
  ALLOWED_TAGS:
    'p br hr h1 h2 h3 h4 h5 h6 strong em del a code pre blockquote ul ol li table thead tbody tr th td'.split(
      ' ',
    ),
  ALLOWED_ATTR: ['href', 'start', 'align'],
  // The others are no addresses, and are not to be tested as such.
  ADD_URI_SAFE_ATTR: ['start', 'align'],
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:)/i,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
} as const

export interface Block {
  type: string
  raw: string
  /** of a block of code: what it holds, and in which language */
  code?: { text: string; language: string }
  token: Token
}

/** The blocks of a text, those of blanks among them. Their `raw` joined is the text. */
export function lex(text: string): { blocks: Block[]; links: TokensList['links'] } {
  const tokens = marked.lexer(text)
  const blocks = tokens.map((token) => ({
    type: token.type,
    raw: token.raw,
    token,
    ...(token.type === 'code' && {
      code: { text: String(token.text), language: /^[\w+#.-]{1,20}/.exec(token.lang ?? '')?.[0] ?? '' },
    }),
  }))
  return { blocks, links: tokens.links }
}

/** A block as elements that can do nothing but be read, and links that can do nothing but open a page. */
export function render({ token }: Block, links: TokensList['links'] = {}): DocumentFragment {
  const fragment = DOMPurify.sanitize(marked.parser(Object.assign([token], { links })), {
    ...CLEAN,
    ALLOWED_TAGS: [...CLEAN.ALLOWED_TAGS],
    ALLOWED_ATTR: [...CLEAN.ALLOWED_ATTR],
    ADD_URI_SAFE_ATTR: [...CLEAN.ADD_URI_SAFE_ATTR],
  })
  for (const link of fragment.querySelectorAll('a')) {
    if (link.hasAttribute('href')) {
      link.target = '_blank'
      link.rel = 'noopener noreferrer nofollow'
    } else link.replaceWith(...link.childNodes)
  }
  return fragment
}

export interface Markdown {
  lex: typeof lex
  render: typeof render
}

;(globalThis as Record<symbol, unknown>)[Symbol.for('parley-chat.markdown')] = {
  lex,
  render,
} satisfies Markdown
