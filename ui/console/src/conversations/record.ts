/** A conversation as it is stored, and as what it is exported. */

import type { InferOutput } from 'valibot'
import type * as responses from '../../../../src/api/parley/response-schemas'
import { orElse, read } from '../api'
import { citedIn, refOf } from '../chat/titles'

export type RecordedConversation = InferOutput<typeof responses.Conversation>
export type RecordedTurn = RecordedConversation['turns'][number]
export type GivenFeedback = InferOutput<typeof responses.Feedback>
type Traced = InferOutput<typeof responses.Trace>['turns'][number]

/** A turn that came to no answer, as the trace has it. */
type FailedTurn = Traced & Required<Pick<Traced, 'error'>>

/** Turns of a conversation that failed, of the latest ones. None where the key may not read traces. */
export async function failedTurns(id: string, signal?: AbortSignal): Promise<FailedTurn[]> {
  const asked = read<{ turns: Traced[] }>(`${pathOf(id)}/trace`, signal)
  const { turns } = await orElse(asked, { turns: [] })
  return turns.flatMap(({ error, ...turn }) => (error ? [{ ...turn, error }] : []))
}

const pathOf = (id: string): string => `/conversations/${encodeURIComponent(id)}`

/** A conversation with all of its turns, oldest first. */
export async function readConversation(id: string, signal?: AbortSignal): Promise<RecordedConversation> {
  const turns: RecordedTurn[] = []
  for (let before = ''; ; ) {
    const page = await read<RecordedConversation>(pathOf(id) + before, signal)
    turns.unshift(...page.turns)
    if (page.earlier === undefined) {
      const { earlier: _, ...rest } = page
      return { ...rest, turns }
    }
    before = `?before=${page.earlier}`
  }
}

/** Parameters of the route. '' narrows nothing. */
export type ListFilter = Partial<
  Record<'q' | 'user_id' | 'rating' | 'unanswered' | 'failed' | 'from' | 'cursor', string>
>

export const listConversations = (
  { limit, ...filter }: ListFilter & { limit: number },
  signal?: AbortSignal,
): Promise<InferOutput<typeof responses.ConversationPage>> => {
  const given = Object.entries(filter).filter(([, value]) => value !== '')
  return read(`/conversations?${new URLSearchParams([['limit', String(limit)], ...given])}`, signal)
}

/** A conversation in Markdown, to be read anywhere. */
export function asMarkdown({ title, id, created_at, turns }: RecordedConversation): string {
  const parts = turns.map(({ question, answer, citations, author, feedback = [] }) => {
    const sources = citedIn(citations).map(refOf)
    const listed = sources.length > 0 ? `\n\nSources: ${sources.map((each) => `\`${each}\``).join(', ')}` : ''
    const said = feedback.map(
      ({ rating, comment }) => `\n\nRated: ${[rating, comment].filter(Boolean).join('. ')}`,
    )
    return `## ${(author ?? question).replace(/\s+/g, ' ')}\n\n${answer}${listed}${said.join('')}\n`
  })
  return `# ${title}\n\nConversation ${id}, started ${new Date(created_at).toISOString()}\n\n${parts.join('\n')}`
}

/** What speaks against an answer, in the words of the page. */
export const faultsOf = ({ declined, warned, citations, feedback = [] }: RecordedTurn): string[] => [
  ...(declined ? ['declined'] : citations.length === 0 ? ['cites nothing'] : []),
  ...(warned ? ['with a warning'] : []),
  ...(feedback.some(({ rating }) => rating === 'down') ? ['rated bad'] : []),
]
