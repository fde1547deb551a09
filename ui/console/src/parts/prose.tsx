/** A finished answer, set by the widget's own renderer. */
import { useEffect, useRef } from 'preact/hooks'
import { Blocks } from '../../../widget/src/blocks'
import { h } from '../../../widget/src/dom'
import { grammarOf, lex, render } from '../../../widget/src/markdown'
import { markAnswer, sourcesCited } from '../../../widget/src/sources'
import type { Citation } from '../../../widget/src/wire'
import { colour } from '../chat/colour'
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
