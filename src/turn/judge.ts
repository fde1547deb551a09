/**
 * The judgement of what a visitor brings, where the model has an `input_guardrail_prompt`: the question, the one that it
 * was rewritten to, the files and changes of the prompt that came with it, and a transcript that begins the conversation. What was said here before
 * was judged when it was said.
 *
 * It is one call, beside the search. Text that is longer than the model's `max_bytes` is judged in pieces.
 */
import { coded } from '../errors'
import type { HistoryMessage } from './events'
import type { Generated } from './generate'
import { guardrailPrompt } from './prompt'
import type { AskRequest } from './request'
import { serialise } from './serialise'
import type { TracedPorts } from './trace'

/** UTF-16 units that a piece has in common with the one before, so that a sentence is not cut in two for both. */
const OVERLAP = 300

/** Bytes of a piece, where `max_bytes` is less: a model reads that much, whatever its answers are made of. */
const SMALLEST_PIECE = 4_096

const MOST_PIECES = 8

/** What a turn brings besides its question. */
export interface Brought {
  /** the question as it was rewritten to stand alone; the same where it was not */
  standalone: string
  /** what its caller says was said before; [] in a conversation that goes on */
  transcript: readonly HistoryMessage[]
}

/** Whether the model judges at all. */
export const hasGuardrail = ({ model }: Pick<AskRequest, 'model'>): boolean => instructionOf(model) !== ''

/**
 * Has everything judged that a visitor brings.
 * @returns the calls that it took; none where the model has no guardrail
 * @throws ApiError 400 for a verdict that is not SAFE, and for more text than is judged
 */
export async function judge(
  request: AskRequest,
  brought: Brought,
  ports: TracedPorts,
  signal: AbortSignal,
): Promise<Generated[]> {
  const { model, question } = request
  const instruction = instructionOf(model)
  if (instruction === '') return []
  const pieces = piecesOf(textOf(request, brought), Math.max(SMALLEST_PIECE, model.max_bytes))
  if (pieces.length > MOST_PIECES) {
    throw coded('too_long', 400, 'The question with its files and earlier messages is too long to be judged.')
  }
  const decided = new AbortController()
  const verdictOn = async (piece: string): Promise<Generated> => {
    const verdict = await ports.generate(
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
    if (/^\W*SAFE\W*$/i.test(verdict.text)) return verdict
    throw coded('unsafe', 400, 'The question was deemed unsafe or inappropriate to answer.')
  }
  try {
    return await Promise.all(pieces.map(verdictOn))
  } finally {
    // One piece that is not safe decides for all.
    decided.abort()
  }
}

function instructionOf({ input_guardrail_prompt: instruction }: AskRequest['model']): string {
  return typeof instruction === 'string' ? instruction : ''
}

/** Whether there is nothing but the question. */
const isAlone = (
  { question, attachments = [], instructions = [] }: AskRequest,
  { standalone, transcript }: Brought,
): boolean =>
  standalone === question && [attachments, instructions, transcript].every(({ length }) => length === 0)

/** As JSON where there is more than the question, so that no text can pass for the end of its own part. */
function textOf(request: AskRequest, brought: Brought): string {
  const { question, attachments = [], instructions = [] } = request
  const { standalone, transcript } = brought
  if (isAlone(request, brought)) return question
  return serialise({
    question,
    ...(standalone !== question && { rewritten_question: standalone }),
    ...(instructions.length > 0 && { instructions }),
    ...(attachments.length > 0 && { files: attachments.map(({ name, text }) => ({ name, text })) }),
    ...(transcript.length > 0 && {
      earlier_messages: transcript.map(({ role, message }) => ({ [role]: message })),
    }),
  })
}

const encoder = new TextEncoder()

/** A text in pieces of at most so many bytes of UTF-8, each of which begins within the one before. */
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
