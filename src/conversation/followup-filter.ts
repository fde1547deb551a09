/**
 * Takes the suggested questions out of a text while it is being written: `<<How long is it kept?>>`.
 *
 * What could still become a suggestion is held back, and the white space before it too, since that goes with it. So
 * the same text comes out whatever pieces it comes in. Only what ends as a question does is taken: `1 << 3` and
 * other shifts of programmers stay.
 */

export const MOST_FOLLOWUPS = 3

// Neither has a line break or another angle bracket inside; a longer one is no question.
const MARKED = /\s*<<([^<>\n]{1,300})>>/y
const UNDECIDED = /\s*(?:<(?:<[^<>\n]{0,300}>?)?)?$/y
/** What cannot begin a suggestion, up to the next place where one could begin. */
const PLAIN = /\s*<?[^\s<]*/y

const QUESTION = /[?？؟]$/

export class FollowupFilter {
  #held = ''
  readonly #questions = new Set<string>()

  /** The first few that differ, in their order. */
  get questions(): string[] {
    return [...this.#questions].slice(0, MOST_FOLLOWUPS)
  }

  /** @returns what of the text so far is certain to be no suggestion, and was not returned before */
  push(piece: string): string {
    return this.#release(piece, false)
  }

  /** @returns what was held back when the text is over, but for white space after suggestions */
  end(): string {
    const rest = this.#release('', true)
    return this.#questions.size > 0 && rest.trim() === '' ? '' : rest
  }

  #release(piece: string, isOver: boolean): string {
    const text = this.#held + piece
    let plain = ''
    let at = 0
    while (at < text.length) {
      const question = matchAt(MARKED, text, at)?.[1]?.trim()
      if (question !== undefined && QUESTION.test(question)) {
        this.#questions.add(question)
        at = MARKED.lastIndex
      } else if (!isOver && matchAt(UNDECIDED, text, at)) {
        break
      } else {
        plain += matchAt(PLAIN, text, at)![0]
        at = PLAIN.lastIndex
      }
    }
    this.#held = text.slice(at)
    return plain
  }
}

/** @param pattern sticky */
function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at
  return pattern.exec(text)
}

/** The questions of a reply that should hold nothing else: marked as they were asked for, or a line each. */
export function questionsIn(reply: string): string[] {
  const filter = new FollowupFilter()
  filter.push(reply)
  if (filter.questions.length > 0) return filter.questions
  const lines = reply.split('\n').map((line) => line.replace(/^[\s\d.)*•-]+/, '').trim())
  return [...new Set(lines.filter((line) => line.length <= 300 && QUESTION.test(line)))].slice(
    0,
    MOST_FOLLOWUPS,
  )
}
