/**
 * Removes suggested questions from a text while it is being written: `<<How long is it kept?>>`.
 *
 * The filter holds back text that may become a suggestion, and the white space before it, which is removed with
 * it. So the result does not depend on how the text is split into pieces. Only text that ends like a question
 * is removed, so `1 << 3` and other shifts in code stay.
 *
 * Held-back text is never scanned again. Otherwise white space that arrives in small pieces would take time
 * quadratic in its length.
 */

export const MOST_SUGGESTIONS = 3

/** Characters. Anything longer is no question. */
const LONGEST = 300

const SPACE = /\s+/y
const PLAIN = /[^\s<]+/y
const QUESTION = /[?\uff1f\u061f]$/

export class SuggestionFilter {
  /** white space held back */
  #space = ''
  /** after that white space: a possible suggestion from its first `<` on */
  #mark = ''
  readonly #questions = new Set<string>()

  /** The first few different questions, in order. */
  get questions(): string[] {
    return [...this.#questions]
  }

  /** @returns newly released text: what is certain to be no suggestion */
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

  /** @returns the held-back text at the end, without white space after suggestions */
  end(): string {
    const rest = this.#space + this.#mark
    this.#space = ''
    this.#mark = ''
    return this.#questions.size > 0 && rest.trim() === '' ? '' : rest
  }

  /**
   * Reads the next character of a possible suggestion. @returns the text released, and how many characters were
   * taken
   */
  #continue(next: string): { plain: string; taken: 0 | 1 } {
    const mark = this.#mark
    if (mark.endsWith('>')) {
      const question = mark.slice(2, -1).trim()
      if (next !== '>' || !QUESTION.test(question)) return { plain: this.#giveUp(), taken: 0 }
      if (this.#questions.size < MOST_SUGGESTIONS) this.#questions.add(question)
      this.#space = ''
      this.#mark = ''
      return { plain: '', taken: 1 }
    }
    if (!fits(mark, next)) return { plain: this.#giveUp(), taken: 0 }
    this.#mark += next
    return { plain: '', taken: 1 }
  }

  /** It is no suggestion: release its first `<` as text and read the rest again. */
  #giveUp(): string {
    const [space, mark] = [this.#space, this.#mark]
    this.#space = ''
    this.#mark = ''
    return `${space}<${this.push(mark.slice(1))}`
  }
}

/**
 * Whether a character can come next in a suggestion, which holds no line breaks and no other angle brackets.
 */
function fits(mark: string, next: string): boolean {
  if (mark === '<') return next === '<'
  const inside = mark.length - 2
  if (next === '>') return inside > 0
  return next !== '<' && next !== '\n' && inside < LONGEST
}

/** @param pattern must be sticky */
function matchAt(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at
  return pattern.exec(text)?.[0]
}

/** The questions of a reply that should hold nothing else: marked as asked for, or one a line. */
export function questionsIn(reply: string): string[] {
  const filter = new SuggestionFilter()
  filter.push(reply)
  if (filter.questions.length > 0) return filter.questions
  const lines = reply.split('\n').map((line) => line.replace(/^[\s\d.)*\u2022-]+/, '').trim())
  return [...new Set(lines.filter((line) => line.length <= 300 && QUESTION.test(line)))].slice(
    0,
    MOST_SUGGESTIONS,
  )
}
