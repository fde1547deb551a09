/**
 * Suggests next questions. If another model writes beside the answering one, it is asked once the answer is
 * there. If not, the answer's own prompt asks for them (answer.ts), which costs no call.
 */
import { settlesWithin } from '../lib/settles'
import type { Source } from '../models/language-model'
import { namespaceOf } from '../models/providers'
import { fitDocuments } from './budget'
import { familyOf, promptDocument, suggestionsPrompt } from './prompt'
import type { AskRequest } from './request'
import { questionsIn } from './suggestion-filter'
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
