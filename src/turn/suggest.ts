/**
 * Suggests next questions. If another model writes beside the answering one, it is asked once the answer is
 * there. If not, the answer's own prompt asks for them (answer.ts), which costs no call, and a filter takes them out of its text.
 */
import { settlesWithin } from '../lib/settles'
import type { Source } from '../models/language-model'
import { namespaceOf } from '../models/providers'
import { fitDocuments } from './fit'
import { familyOf, promptDocument, suggestionsPrompt } from './prompt'
import type { AskRequest } from './request'
import type { TracedPorts } from './trace'

/** How long a finished answer waits for suggestions, in milliseconds. */
export const SUGGESTIONS_MS = 3_000

/** Bytes of documents in a call for suggestions: enough to ask about, few enough to be quick. */
const DOCUMENT_BYTES = 4_000
const LONGEST_ANSWER = 4_000

/**
 * Whether suggestions take a call of their own. The built-in model always needs one, because it reads no
 * prompt.
 */
export const suggestsAside = async (request: AskRequest, ports: TracedPorts): Promise<boolean> =>
  request.suggests === true &&
  (namespaceOf(request.model.model_name) === 'local' || (await ports.hasRewriter()))

/** Suggests questions for an answer. Never fails: if none come in time, it returns none. */
export async function suggest(
  request: AskRequest,
  { question, answer, sources }: { question: string; answer: string; sources: Source[] },
  ports: TracedPorts,
  signal: AbortSignal,
): Promise<string[]> {
  const late = new AbortController()
  const family = familyOf(request.model.model_name)
  const few = fitDocuments([sources], '', DOCUMENT_BYTES, family)
  const documents = few.map(promptDocument)
  try {
    const writing = ports.generate(
      {
        purpose: 'followups',
        messages: suggestionsPrompt(question, answer.slice(0, LONGEST_ANSWER), documents),
        question,
        sources,
        history: [
          { role: 'user', content: question },
          { role: 'assistant', content: answer },
        ],
        stream: false,
      },
      AbortSignal.any([signal, late.signal]),
    )
    if (await settlesWithin(SUGGESTIONS_MS, writing)) return questionsIn((await writing).text)
    late.abort()
  } catch {
    // The answer is complete without them, and the trace holds the error.
  }
  return []
}

// Removes suggested questions from a text while it is being written: `<<How long is it kept?>>`.
//
// The filter holds back text that may become a suggestion, and the white space before it, which is removed with
// it. So the result does not depend on how the text is split into pieces. Only text that ends like a question
// is removed, so `1 << 3` and other shifts in code stay.
//
// Held-back text is never scanned again. Otherwise white space that arrives in small pieces would take time
// quadratic in its length.

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
