/** The model call that answers the question: its prompt, and its text as readers see it. */

import { textOf } from '../lib/parts'
import type { ChatMessage, Source } from '../models/language-model'
import { enumeratedPrompt } from './caller-passages'
import { requireForm } from './form'
import { type Generated, malformedBy } from './generate'
import { answerPrompt, citing, familyOf, promptDocument, suggesting } from './prompt'
import type { AskRequest } from './request'
import { SuggestionFilter } from './suggestion-filter'
import type { TracedPorts } from './trace'

export interface Answered {
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
  }: { question: string; sources: Source[]; suggests: boolean; before?: ChatMessage[] },
  ports: TracedPorts,
  signal: AbortSignal,
  onText: (text: string) => void,
): Promise<Answered> {
  const { model, labels, given, form } = request
  const cited = labels ? citing(model.system_prompt) : model.system_prompt
  const filter = suggests ? new SuggestionFilter() : undefined
  const shown: string[] = []
  const show = (text: string) => {
    if (text === '') return
    shown.push(text)
    onText(text)
  }
  const answer = await ports.generate(
    {
      purpose: given?.alone ? 'task' : 'answer',
      messages: given
        ? given.alone
          ? [{ role: 'user', content: question }]
          : enumeratedPrompt(given, sources, before, question)
        : answerPrompt(
            familyOf(model.model_name),
            suggests ? suggesting(cited) : cited,
            sources.map(promptDocument),
            question,
            request.assistant === undefined ? undefined : { before, asked: textOf(request.question) },
          ),
      question,
      sources,
      history: [],
      ...(form && { form }),
      ...(request.support?.below === 'withhold' && { keepsText: true as const }),
      // Always stream: readers who follow the turn see the answer grow, even if its caller reads it whole.
      stream: true,
    },
    signal,
    filter ? (text) => show(filter.push(text)) : onText,
  )
  if (form) await requireForm(form, answer)
  if (!filter) return { answer, suggestions: [] }
  show(filter.end())
  const text = shown.join('')
  if (text.trim() === '') throw malformedBy(answer.model)
  return { answer: { ...answer, text }, suggestions: filter.questions }
}
