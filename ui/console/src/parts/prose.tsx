/** A finished answer, set by the widget's own renderer, and the colours of code in answers. */
import { useEffect, useRef } from 'preact/hooks'
import type { LanguageRegistration } from 'shiki/core'
import { type BlockOptions, Blocks } from '../../../widget/src/blocks'
import type { Grammar } from '../../../widget/src/code'
import { h } from '../../../widget/src/dom'
import { grammarOf, lex, render } from '../../../widget/src/markdown'
import { markAnswer, sourcesCited } from '../../../widget/src/sources'
import type { Citation } from '../../../widget/src/wire'
import { WORDS } from '../chat/words'

export function Prose({ answer, citations }: { answer: string; citations: Citation[] }) {
  const holder = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const sources = sourcesCited(citations, {})
    const blocks = new Blocks({
      words: WORDS,
      cite: (number) => h('span', { class: 'cite' }, h('span', {}, String(number))),
      colour,
      copy: (text) => navigator.clipboard.writeText(text).catch(() => {}),
    })
    blocks.update(markAnswer(answer, citations, sources), { lex, render, grammarOf }, true)
    holder.current?.replaceChildren(blocks.element)
  }, [answer, citations])
  return <div ref={holder} />
}

// =============================================================================
// Colours of code in answers. The script that knows them, and each grammar, are loaded when code needs them.

const GRAMMARS: Record<Grammar, () => Promise<{ default: LanguageRegistration[] }>> = {
  bash: () => import('shiki/langs/bash.mjs'),
  c: () => import('shiki/langs/c.mjs'),
  csharp: () => import('shiki/langs/csharp.mjs'),
  css: () => import('shiki/langs/css.mjs'),
  diff: () => import('shiki/langs/diff.mjs'),
  docker: () => import('shiki/langs/docker.mjs'),
  go: () => import('shiki/langs/go.mjs'),
  ini: () => import('shiki/langs/ini.mjs'),
  java: () => import('shiki/langs/java.mjs'),
  json: () => import('shiki/langs/json.mjs'),
  kotlin: () => import('shiki/langs/kotlin.mjs'),
  powershell: () => import('shiki/langs/powershell.mjs'),
  python: () => import('shiki/langs/python.mjs'),
  rust: () => import('shiki/langs/rust.mjs'),
  sql: () => import('shiki/langs/sql.mjs'),
  toml: () => import('shiki/langs/toml.mjs'),
  tsx: () => import('shiki/langs/tsx.mjs'),
  xml: () => import('shiki/langs/xml.mjs'),
  yaml: () => import('shiki/langs/yaml.mjs'),
}

export const colour: NonNullable<BlockOptions['colour']> = async (text, grammar) => {
  const { piecesOf } = await import('../../../widget/src/code')
  return piecesOf(text, grammar, async (name) => (await GRAMMARS[name]()).default)
}
