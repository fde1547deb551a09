/**
 * What could be asked next. A model beside the answering one is asked for it when the answer is there; without such
 * a model the answer's own prompt asks (answer.ts), which costs no call.
 */
import type { Source } from '../models/language-model'
import { namespaceOf } from '../models/providers'
import { fitDocuments } from './budget'
import { questionsIn } from './followup-filter'
import type { Generated } from './generate'
import { familyOf, followupsPrompt, promptDocument } from './prompt'
import type { AskRequest } from './request'
import type { TracedPorts } from './trace'

/** What a finished answer is kept waiting for suggestions, in milliseconds. */
export const FOLLOWUPS_MS = 3_000

/** Bytes of documents that a call for suggestions is given: enough to ask about, and few enough to be quick. */
const DOCUMENT_BYTES = 4_000
const LONGEST_ANSWER = 4_000

export interface Suggestions {
  questions: string[]
  /** the call that made them, where there was one of its own */
  generated?: Generated
}

/** Whether suggestions are a call of their own. The built-in model makes them so: it reads no prompt. */
export const suggestsAside = async (request: AskRequest, ports: TracedPorts): Promise<boolean> =>
  request.followups === true &&
  (namespaceOf(request.model.model_name) === 'local' || (await ports.hasRewriter()))

/** Suggestions for an answer. Never fails: without any in time there are none. */
export async function suggest(
  request: AskRequest,
  { question, answer, sources }: { question: string; answer: string; sources: Source[] },
  ports: TracedPorts,
  signal: AbortSignal,
): Promise<Suggestions> {
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(), FOLLOWUPS_MS)
  const over = new Promise<never>((_, reject) => {
    late.signal.addEventListener('abort', () => reject(late.signal.reason), { once: true })
  })
  const family = familyOf(request.model.model_name)
  const few = fitDocuments([sources], '', DOCUMENT_BYTES, family)
  const documents = few.map(promptDocument)
  try {
    const generated = await Promise.race([
      over,
      ports.generate(
        {
          purpose: 'followups',
          messages: followupsPrompt(question, answer.slice(0, LONGEST_ANSWER), documents),
          question,
          sources,
          history: [
            { role: 'user', content: question },
            { role: 'assistant', content: answer },
          ],
          stream: false,
        },
        AbortSignal.any([signal, late.signal]),
      ),
    ])
    return { questions: questionsIn(generated.text), generated }
  } catch {
    // The answer is complete without them, and the trace tells what happened.
    return { questions: [] }
  } finally {
    clearTimeout(timer)
  }
}
