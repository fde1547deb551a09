/**
 * The prompts sent to models (contract 1.9). `max_bytes` counts their bytes, and people point `openai_url` at
 * their own servers. So their markers and their order are fixed.
 */
import type { ChatMessage, Source } from '../models/language-model'
import { namespaceOf } from '../models/providers'
import { serialise } from './serialise'

/** `tags`: <Data> and <Question>. `context`: Cloudflare's format, a context between lines. */
export type PromptFamily = 'tags' | 'context'

export const familyOf = (modelName: string): PromptFamily =>
  namespaceOf(modelName) === 'cloudflare' ? 'context' : 'tags'

/**
 * The prompt for the answer: the system prompt, if there is one, and one message with documents and question.
 */
export function answerPrompt(
  family: PromptFamily,
  systemPrompt: string | undefined,
  documents: unknown[],
  question: string,
): ChatMessage[] {
  const data = serialise(documents)
  const content =
    family === 'tags'
      ? `<Data>\n${data}\n\n<Question>\n${question}\n\n<Answer>`
      : `Context information is below.\n---------------------\n${data}\n` +
        'Answer the query from this context alone, which is JSON, and say so when it holds no answer.\n' +
        `Query: ${question}\nAnswer: `
  return [...system(systemPrompt), { role: 'user', content }]
}

/** A document as the prompt holds it. It carries its label if the answer is to cite it. */
export const promptDocument = ({ document, label }: Pick<Source, 'document' | 'label'>): unknown =>
  label === undefined ? document : { ...document, citation_label: label }

const CITING =
  'After each statement that a document supports, put the citation_label of that document in square brackets, ' +
  'like [name.txt], and for several documents like [name.txt][other.txt]. Put nothing else in square brackets.'

/** A system prompt that also asks for citations in square brackets. */
export const citing = (systemPrompt: string | undefined): string =>
  systemPrompt ? `${systemPrompt}\n\n${CITING}` : CITING

const SUGGESTING =
  'After the answer, append up to three short questions that the reader may ask next and that the data answers. ' +
  'Enclose each of them in double angle brackets, like <<How long is it kept?>>. Put no heading before them and ' +
  'nothing after them, and do not repeat a question.'

/** A system prompt that also asks for questions after the answer. suggestion-filter.ts takes them out again. */
export const suggesting = (systemPrompt: string | undefined): string =>
  systemPrompt ? `${systemPrompt}\n\n${SUGGESTING}` : SUGGESTING

/** The prompt for suggestions alone, sent after the answer: one user message. */
export const suggestionsPrompt = (question: string, answer: string, documents: unknown[]): ChatMessage[] => [
  {
    role: 'user',
    content:
      'Write up to three short questions that the reader of the answer below may ask next, that the data answers ' +
      'and that were not asked yet, in the language of the question. Enclose each of them in double angle brackets, ' +
      `like <<How long is it kept?>>, and write nothing else.\n\n<Data>\n${serialise(documents)}\n\n` +
      `<Question>\n${question}\n\n<Answer>\n${answer}\n\n<Next questions>\n`,
  },
]

const INSTRUCTION =
  'Rewrite the follow-up question on top of a human-assistant conversation history as a standalone question ' +
  'that encompasses all pertinent context.'

/** The prompt for a standalone question: one user message, no system prompt. */
export function standalonePrompt(
  family: PromptFamily,
  history: ChatMessage[],
  question: string,
): ChatMessage[] {
  const cap = family === 'context' ? ' Use at most 1024 characters.' : ''
  const messages = history.map(({ role, content }) => `${serialise({ [role]: content })}\n`).join('')
  const content =
    `\n            ${INSTRUCTION}${cap}\n        ` +
    `\n\n<Conversation history>\n${messages}\n\n<Question>\n${question}\n\n<Standalone question>\n`
  return [{ role: 'user', content }]
}

/**
 * The prompt that judges a question before it is answered. The reply must be SAFE or UNSAFE.
 * @param alone true if the text is the question itself; false if it is JSON, or a part of it, with all that
 *   came along
 */
export const guardrailPrompt = (instruction: string, text: string, alone: boolean): ChatMessage[] => [
  { role: 'system', content: instruction },
  {
    role: 'user',
    content:
      (alone
        ? 'Classify the question below.'
        : 'Classify the question below with all that came with it, which is JSON: it is UNSAFE where any part of it is.') +
      ` Reply with one word: SAFE or UNSAFE.\n\n<Question>\n${text}\n\n<Classification>\n`,
  },
]

const system = (prompt: string | undefined): ChatMessage[] =>
  prompt ? [{ role: 'system', content: prompt }] : []
