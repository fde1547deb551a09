/**
 * Takes the suggested questions out of a text while it is being written: `<<How long is it kept?>>`.
 *
 * What could still become a suggestion is held back, and the white space before it too, since that goes with it. So
 * the same text comes out whatever pieces it comes in. Only what ends as a question does is taken: `1 << 3` and
 * other shifts of programmers stay.
 *
 * What is held back is never gone through again, or white space that comes in small pieces would take a time that
 * grows with the square of its length.
 */

export const MOST_FOLLOWUPS = 3

/** Characters of a suggestion. A longer one is no question. */
const LONGEST = 300

const SPACE = /\s+/y
const PLAIN = /[^\s<]+/y
const QUESTION = /[?？؟]$/

export class FollowupFilter {
  /** white space that was not returned */
  #space = ''
  /** after it: the beginning of what may be a suggestion, from its first `<` on */
  #mark = ''
  readonly #questions = new Set<string>()

  /** The first few that differ, in their order. */
  get questions(): string[] {
    return [...this.#questions]
  }

  /** @returns what of the text so far is certain to be no suggestion, and was not returned before */
  push(piece: string): string {
    let plain = ''
    for (let at = 0; at < piece.length; ) {
      if (this.#mark !== '') {
        const step = this.#continue(piece[at]!)
        plain += step.plain
        at += step.taken
        continue
      }
      const run = matchAt(SPACE, piece, at) ?? matchAt(PLAIN, piece, at) ?? '<'
      at += run.length
      if (run === '<') {
        this.#mark = run
      } else if (run.trimStart() === '') {
        this.#space += run
      } else {
        plain += this.#space + run
        this.#space = ''
      }
    }
    return plain
  }

  /** @returns what was held back when the text is over, but for white space after suggestions */
  end(): string {
    const rest = this.#space + this.#mark
    this.#space = ''
    this.#mark = ''
    return this.#questions.size > 0 && rest.trim() === '' ? '' : rest
  }

  /** The next character after the beginning of what may be a suggestion. @returns how many of it were taken */
  #continue(next: string): { plain: string; taken: 0 | 1 } {
    const mark = this.#mark
    if (mark.endsWith('>')) {
      const question = mark.slice(2, -1).trim()
      if (next !== '>' || !QUESTION.test(question)) return { plain: this.#giveUp(), taken: 0 }
      if (this.#questions.size < MOST_FOLLOWUPS) this.#questions.add(question)
      this.#space = ''
      this.#mark = ''
      return { plain: '', taken: 1 }
    }
    if (!fits(mark, next)) return { plain: this.#giveUp(), taken: 0 }
    this.#mark += next
    return { plain: '', taken: 1 }
  }

  /** It is no suggestion: its first `<` is text, and the rest is read anew. */
  #giveUp(): string {
    const [space, mark] = [this.#space, this.#mark]
    this.#space = ''
    this.#mark = ''
    return `${space}<${this.push(mark.slice(1))}`
  }
}

/** Whether a character can come next in a suggestion, which holds neither line breaks nor other angle brackets. */
function fits(mark: string, next: string): boolean {
  if (mark === '<') return next === '<'
  const inside = mark.length - 2
  if (next === '>') return inside > 0
  return next !== '<' && next !== '\n' && inside < LONGEST
}

/** @param pattern sticky */
function matchAt(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at
  return pattern.exec(text)?.[0]
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
