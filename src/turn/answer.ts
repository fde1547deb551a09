/** The call that answers: its prompt, and its text as readers are to see it. */
import type { Source } from '../models/language-model'
import { FollowupFilter } from './followup-filter'
import { type Generated, malformedBy } from './generate'
import { answerPrompt, citing, familyOf, promptDocument, suggesting } from './prompt'
import type { AskRequest } from './request'
import type { TracedPorts } from './trace'

export interface Answered {
  /** its text without the suggestions */
  answer: Generated
  /** what the model suggested in it */
  followups: string[]
}

/**
 * @param suggests whether the model is asked to suggest questions after its answer
 * @param onText called with each piece of the answer
 * @throws ApiError from the model, an answer that is nothing but suggestions included
 */
export async function answerQuestion(
  request: AskRequest,
  { question, sources, suggests }: { question: string; sources: Source[]; suggests: boolean },
  ports: TracedPorts,
  signal: AbortSignal,
  onText: (text: string) => void,
): Promise<Answered> {
  const { model, labels, stream } = request
  const cited = labels ? citing(model.system_prompt) : model.system_prompt
  const filter = suggests ? new FollowupFilter() : undefined
  const shown: string[] = []
  const show = (text: string) => {
    if (text === '') return
    shown.push(text)
    onText(text)
  }
  const answer = await ports.generate(
    {
      purpose: 'answer',
      messages: answerPrompt(
        familyOf(model.model_name),
        suggests ? suggesting(cited) : cited,
        sources.map(promptDocument),
        question,
      ),
      question,
      sources,
      history: [],
      stream,
    },
    signal,
    filter ? (text) => show(filter.push(text)) : onText,
  )
  if (!filter) return { answer, followups: [] }
  show(filter.end())
  const text = shown.join('')
  if (text.trim() === '') throw malformedBy(answer.model)
  return { answer: { ...answer, text }, followups: filter.questions }
}
