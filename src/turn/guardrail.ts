/**
 * The guardrail: judges what a visitor brings, if the model has an `input_guardrail_prompt`. That is the
 * question, its rewritten form, the attached files, the changes to the prompt, the schema of the answer, and a
 * transcript that begins the conversation. Earlier turns of this conversation were judged when they were asked.
 *
 * It is one call, made while the search runs. Text longer than the model's `max_bytes` is judged in pieces.
 */
import { coded } from '../errors'
import { mapFew } from '../lib/few'
import { filesOf, promptText, textOf } from '../lib/parts'
import type { HistoryMessage } from './events'
import { guardrailPrompt, serialise } from './prompt'
import type { AskRequest } from './request'
import type { TracedPorts } from './trace'

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
export interface Brought {
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
