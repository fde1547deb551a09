/**
 * Markdown, loaded when the first answer is near: marked reads it, DOMPurify keeps what it makes to a few harmless
 * elements. HTML that the model writes is shown as text, but for line breaks; images become links.
 */
import DOMPurify from 'dompurify'
import type { TokensList } from 'marked'
import { type Block, grammarOf, lex, marked } from './lexer'

export { type Block, grammarOf, lex }

const CLEAN = {
  ALLOWED_TAGS:
    'p br hr h1 h2 h3 h4 h5 h6 strong em del sup a code pre blockquote ul ol li table thead tbody tr th td'.split(
      ' ',
    ),
  ALLOWED_ATTR: ['href', 'start', 'align', 'data-language'],
  // The others are no addresses, and are not to be tested as such.
  ADD_URI_SAFE_ATTR: ['start', 'align', 'data-language'],
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:)/i,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
} as const

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
  grammarOf: typeof grammarOf
}

;(globalThis as Record<symbol, unknown>)[Symbol.for('parley-chat.markdown')] = {
  lex,
  render,
  grammarOf,
} satisfies Markdown
