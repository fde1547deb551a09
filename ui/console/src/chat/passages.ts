/** What each document that a turn found has to do with its answer: pure. */
import { plain } from '../../../widget/src/plain'
import type { Citation } from '../../../widget/src/wire'
import { refOf } from './titles'
import type { Cut, Hit, PromptSource } from './wire'

/** A search of a turn, as its trace or its events have it. */
export interface Found {
  collection?: string
  hits?: (Hit & { title?: string })[]
}

/** A document and its part in an answer. */
export interface Passage extends PromptSource {
  /** as the search had it; absent in traces */
  title?: string
  /** `cited`: the answer names it; `read`: the model had it; `left`: it did not fit */
  part: 'cited' | 'read' | 'left'
  /** the sentences of the answer that cite it */
  says: string[]
  /** how much of it the model had, if not all */
  cut?: Cut
}

interface Answered {
  searches: readonly Found[]
  /** the documents of the prompt, where they are known: attached ones are in no search */
  sources?: readonly PromptSource[]
  cut: readonly Cut[]
  answer: string
  citations: readonly Citation[]
}

/** Each document once, in the order of the searches. */
export function passagesOf({ searches, sources = [], cut, answer, citations }: Answered): Passage[] {
  const found = searches.flatMap(({ collection = '', hits = [] }) =>
    hits.map(({ id = '', title }) => ({
      collection,
      document_id: id,
      ...(title !== undefined && { title }),
    })),
  )
  const each = new Map<string, PromptSource & { title?: string }>()
  for (const ref of [...found, ...sources]) if (!each.has(refOf(ref))) each.set(refOf(ref), ref)
  return [...each].map(([name, ref]) => {
    const shortened = cut.find((one) => refOf(one) === name)
    const says = citations
      .filter((one) => refOf(one) === name)
      .map(({ start, end }) => said(answer.slice(start, end)))
    const part = says.length > 0 ? 'cited' : shortened?.passages === 0 ? 'left' : 'read'
    return { ...ref, part, says: [...new Set(says)].filter(Boolean), ...(shortened && { cut: shortened }) }
  })
}

/** A sentence of an answer without its labels and marks. */
const said = (text: string): string =>
  plain(text.replace(/[ \t]*\[[^[\]\n]+\](?!\()/g, '').replace(/\s*\|\s*/g, ' '))
