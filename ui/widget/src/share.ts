/** A conversation as Markdown, with its sources as links, to be pasted anywhere. Pure. */

import { MARK, markAnswer, type Source } from './sources'
import type { Turn } from './turn'

const inLine = (text: string): string => text.replace(/\s+/g, ' ').trim()

const escaped = (text: string): string => inLine(text).replace(/[\\[\]*_`<>]/g, '\\$&')

const linked = (text: string, { url }: Source): string => (url === undefined ? text : `[${text}](<${url}>)`)

/** Answered turns alone: what was not answered is nothing to share. */
export const asMarkdown = (turns: readonly Turn[]): string =>
  turns
    .filter(({ state }) => state === 'done')
    .map(turnAsMarkdown)
    .join('\n')

function turnAsMarkdown({ question, answer, citations, sources, author }: Turn): string {
  const cited = new Set<Source>()
  const text = markAnswer(answer, citations, sources).replace(MARK, (_, number: string) => {
    const source = sources[Number(number) - 1]
    if (!source) return ''
    cited.add(source)
    return linked(`\\[${number}\\]`, source)
  })
  const listed = [...cited].sort((a, b) => a.number - b.number)
  const list = listed.map((source) => `${source.number}. ${linked(escaped(source.title), source)}\n`)
  return `## ${escaped(author ?? question)}\n\n${text.trim()}\n${list.length > 0 ? `\n${list.join('')}` : ''}`
}
