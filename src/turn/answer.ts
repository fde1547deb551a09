/** The model call that answers the question: its prompt, its text as readers see it, and the questions to ask next. */
import { coded } from '../errors'
import { mapFew } from '../lib/few'
import { filesOf, picturesOf, promptText, textOf } from '../lib/parts'
import { settlesWithin } from '../lib/waiting'
import type { ChatMessage, GenerationRequest, Source } from '../models/language-model'
import { namespaceOf } from '../models/providers'
import type { HistoryMessage } from './events'
import { requireForm } from './form'
import { enumeratedPrompt } from './look-back'
import {
  answerPrompt,
  citing,
  familyOf,
  fitDocuments,
  guardrailPrompt,
  promptDocument,
  serialise,
  suggesting,
  suggestionsPrompt,
} from './prompt'
import type { AskRequest } from './request'
import type { ToolSteps } from './tools'
import { type Generated, malformedBy, type TracedPorts } from './trace'

interface Answered {
  /** the answer's text without the suggestions */
  answer: Generated
  /** questions that the model suggested in its text */
  suggestions: string[]
}

/**
 * @param before the latest turns, if the prompt holds them
 * @param suggests whether the model is asked to suggest questions after its answer
 * @param onText called with each piece of the answer
 * @throws ApiError from the model; also if the answer holds nothing but suggestions
 */
export async function answerQuestion(
  request: AskRequest,
  {
    question,
    sources,
    suggests,
    before = [],
    steps,
  }: { question: string; sources: Source[]; suggests: boolean; before?: ChatMessage[]; steps: ToolSteps },
  ports: TracedPorts,
  signal: AbortSignal,
  onText: (text: string) => void,
): Promise<Answered> {
  const { model, labels, given, form } = request
  const pictures = picturesOf(request.question)
  const cited = labels ? citing(model.system_prompt) : model.system_prompt
  const filter = suggests ? new SuggestionFilter() : undefined
  const show = (text: string) => {
    if (text === '') return
    steps.write(text)
    onText(text)
  }
  const write = filter ? (text: string) => show(filter.push(text)) : show
  const prompt = given
    ? given.alone
      ? [{ role: 'user' as const, content: question }]
      : enumeratedPrompt(given, sources, before, question)
    : answerPrompt(
        familyOf(model.model_name),
        suggests ? suggesting(cited) : cited,
        sources.map(promptDocument),
        question,
        request.assistant === undefined ? undefined : { before, asked: textOf(request.question) },
      )
  const generation: Omit<GenerationRequest, 'messages'> = {
    purpose: given?.alone ? 'task' : 'answer',
    question,
    sources,
    history: [],
    ...(form && { form }),
    ...(request.support?.below === 'withhold' && { keepsText: true as const }),
    // Always stream: readers who follow the turn see the answer grow, even if its caller reads it whole.
    stream: true,
  }
  const asked = pictures.length > 0 ? [...prompt.slice(0, -1), { ...prompt.at(-1)!, pictures }] : prompt
  let messages = [...asked, ...(await steps.resume())]
  let answer: Generated
  for (;;) {
    const offered = { ...generation, ...steps.offer(messages) }
    answer = steps.read(await ports.generate(offered, signal, steps.shown(write)), write)
    const further = await steps.take(answer)
    if (!further) break
    if (filter) show(filter.end())
    messages = [...messages, ...further]
  }
  if (filter) show(filter.end())
  const { content, waits } = steps
  const text = textOf(content)
  if (waits) return { answer: { ...answer, text, content, finish: 'tool_calls' }, suggestions: [] }
  if (answer.calls && steps.any) throw steps.endless()
  if (text.trim() === '') throw malformedBy(answer.model)
  answer = { ...answer, text, content }
  if (form) await requireForm(form, answer)
  return { answer, suggestions: filter?.questions ?? [] }
}

// =============================================================================
// Suggests next questions. If another model writes beside the answering one, it is asked once the answer is
// there. If not, the answer's own prompt asks for them (answer.ts), which costs no call, and a filter takes them out of its text.

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

const MOST_SUGGESTIONS = 3

/** Characters. Anything longer is no question. */
const LONGEST = 300

const SPACE = /\s+/y
const PLAIN_RUN = /[^\s<]+/y
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
      const run = matchAt(SPACE, piece, at) ?? matchAt(PLAIN_RUN, piece, at) ?? '<'
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

// =============================================================================
// The guardrail: judges what a visitor brings, if the model has an `input_guardrail_prompt`. That is the
// question, its rewritten form, the attached files, the changes to the prompt, the schema of the answer, and a
// transcript that begins the conversation. Earlier turns of this conversation were judged when they were asked.
//
// It is one call, made while the search runs. Text longer than the model's `max_bytes` is judged in pieces.

/** Calls of a guardrail that run at once. An object waits for the headers of at most six replies, and the turn needs others. */
const AT_ONCE = 4

/**
 * UTF-16 units that two neighbouring pieces share, so that each sentence at a border is whole in one of them.
 */
const OVERLAP = 300

/** Bytes of a piece if `max_bytes` is less. Any model reads this much, however small its budget for answers. */
const SMALLEST_PIECE = 4_096

const MOST_PIECES = 8

/** What a turn brings besides its question. */
interface Brought {
  /** the question rewritten to stand alone; if it was not rewritten, the question itself */
  standalone: string
  /** what the caller says was said before; [] in a conversation that goes on */
  transcript: readonly HistoryMessage[]
}

/** Whether the model has a guardrail. */
export const hasGuardrail = ({ model }: Pick<AskRequest, 'model'>): boolean => instructionOf(model) !== ''

/**
 * Judges everything that a visitor brings, if the model has a guardrail.
 * @throws ApiError 400 if a verdict is not SAFE, or if there is more text than can be judged
 */
export async function judge(
  request: AskRequest,
  brought: Brought,
  ports: TracedPorts,
  signal: AbortSignal,
): Promise<void> {
  const { model } = request
  const question = textOf(request.question)
  const instruction = instructionOf(model)
  if (instruction === '') return
  const pieces = piecesOf(judgedText(request, brought), Math.max(SMALLEST_PIECE, model.max_bytes))
  if (pieces.length > MOST_PIECES) {
    throw coded('too_long', 400, 'The question with its files and earlier messages is too long to be judged.')
  }
  const decided = new AbortController()
  const verdictOn = async (piece: string): Promise<void> => {
    const { text } = await ports.generate(
      {
        purpose: 'guardrail',
        messages: guardrailPrompt(instruction, piece, isAlone(request, brought)),
        question,
        sources: [],
        history: [],
        stream: false,
      },
      AbortSignal.any([signal, decided.signal]),
    )
    if (!/^\W*SAFE\W*$/i.test(text))
      throw coded('unsafe', 400, 'The question was deemed unsafe or inappropriate to answer.')
  }
  try {
    await mapFew(pieces, AT_ONCE, verdictOn)
  } finally {
    // One unsafe piece decides for all, so abort the other calls.
    decided.abort()
  }
}

function instructionOf({ input_guardrail_prompt: instruction }: AskRequest['model']): string {
  return typeof instruction === 'string' ? instruction : ''
}

/** The schema that the answer has to fit. Its names and descriptions reach the model as a prompt does. */
const schemaOf = ({ form }: AskRequest) =>
  form?.type === 'schema' ? { name: form.name, schema: form.schema } : undefined

/** Whether the turn brings nothing but the question. */
const isAlone = (request: AskRequest, { standalone, transcript }: Brought): boolean =>
  standalone === promptText(request.question) &&
  schemaOf(request) === undefined &&
  [request.instructions ?? [], transcript].every(({ length }) => length === 0)

/** With more than the question the text is JSON, so that no part can fake its own end. */
function judgedText(request: AskRequest, brought: Brought): string {
  const { instructions = [] } = request
  const { standalone, transcript } = brought
  const question = textOf(request.question)
  const files = filesOf(request.question)
  const schema = schemaOf(request)
  if (isAlone(request, brought)) return question
  return serialise({
    question,
    ...(standalone !== question && { rewritten_question: standalone }),
    ...(instructions.length > 0 && { instructions }),
    ...(schema && { answer_format: schema }),
    ...(files.length > 0 && { files: files.map(({ name, text }) => ({ name, text })) }),
    ...(transcript.length > 0 && {
      earlier_messages: transcript.map(({ role, content }) => ({ [role]: promptText(content) })),
    }),
  })
}

const encoder = new TextEncoder()

/** Cuts a text into pieces of at most `bytes` UTF-8 bytes. Each piece overlaps the one before. */
export function piecesOf(text: string, bytes: number): string[] {
  const buffer = new Uint8Array(bytes)
  const pieces: string[] = []
  for (let start = 0; ; ) {
    const { read } = encoder.encodeInto(text.slice(start), buffer)
    pieces.push(text.slice(start, start + read))
    if (start + read >= text.length) return pieces
    start += Math.max(1, read - OVERLAP)
    if (/[\udc00-\udfff]/.test(text[start]!)) start -= 1
  }
}
