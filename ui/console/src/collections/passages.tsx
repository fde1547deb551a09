/** The passages of a document: what a model reads of it when a prompt has no room for all of it. */
import { LONG_TEXT, passagesOf } from '../../../../src/models/passages'
import { count, many } from '../parts/format'
import type { Doc } from './wire'

export function Passages({ document }: { document: Doc }) {
  const long = Object.entries(document).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string' && entry[1].length > LONG_TEXT,
  )
  if (long.length === 0) {
    return <p class="hint">It has no long text: a model reads it whole, or not at all.</p>
  }
  return long.map(([field, text]) => {
    const passages = passagesOf(text)
    return (
      <section key={field}>
        <p class="hint">
          <code>{field}</code> has {count(text.length)} characters in {many(passages.length, 'passage')}. When
          a prompt has no room for all of it, a model reads those that say most about the question.
        </p>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached with the keyboard */}
        <ol class="document-passages" tabIndex={0} aria-label={`Passages of ${field}`}>
          {passages.map((passage) => (
            <li key={passage.position} class="document-passage">
              <p class="soft" dir="auto">
                {passage.position + 1}
                {passage.headings.map(({ text: heading }) => ` › ${heading}`).join('')}
              </p>
              <p class="document-passage-text" dir="auto">
                {passage.text}
              </p>
            </li>
          ))}
        </ol>
      </section>
    )
  })
}
