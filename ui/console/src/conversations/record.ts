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
  const parts = turns.map(({ question, answer, citations, feedback = [] }) => {
    const sources = citedIn(citations).map(refOf)
    const listed = sources.length > 0 ? `\n\nSources: ${sources.map((each) => `\`${each}\``).join(', ')}` : ''
    const said = feedback.map(
      ({ rating, comment }) => `\n\nRated: ${[rating, comment].filter(Boolean).join('. ')}`,
    )
    return `## ${question.replace(/\s+/g, ' ')}\n\n${answer}${listed}${said.join('')}\n`
  })
  return `# ${title}\n\nConversation ${id}, started ${new Date(created_at).toISOString()}\n\n${parts.join('\n')}`
}

/** What speaks against an answer, in the words of the page. */
export const faultsOf = ({ declined, warned, citations, feedback = [] }: RecordedTurn): string[] => [
  ...(declined ? ['declined'] : citations.length === 0 ? ['cites nothing'] : []),
  ...(warned ? ['with a warning'] : []),
  ...(feedback.some(({ rating }) => rating === 'down') ? ['rated bad'] : []),
]

// =============================================================================
// Questions that were not answered well, those that mean the same in one group.

interface Asked {
  conversation: string
  turn: number
  /** as it was searched: a follow-up says little by itself */
  question: string
  at: number
  faults: string[]
  /** what people said against the answer, each as often as it was said */
  reasons: string[]
}

/** Never empty: the first one stands for the group. */
export type Group = [Asked, ...Asked[]]

const latest = (group: Group) => Math.max(...group.map(({ at }) => at))

/** The most asked first, then the latest. */
const sorted = (groups: Group[]) => groups.sort((a, b) => b.length - a.length || latest(b) - latest(a))

/** The same question, however it is spelt, in one group. */
export function grouped(conversations: readonly RecordedConversation[]): Group[] {
  const groups = new Map<string, Group>()
  for (const { id, turns } of conversations) {
    for (const turn of turns) {
      const faults = faultsOf(turn)
      if (faults.length === 0) continue
      const question = turn.standalone ?? turn.question
      const reasons = (turn.feedback ?? []).flatMap(({ reasons = [] }) => reasons)
      const asked = { conversation: id, turn: turn.turn, question, at: turn.created_at, faults, reasons }
      const name = question
        .toLowerCase()
        .replace(/[^\p{L}\p{N}]+/gu, ' ')
        .trim()
      const group = groups.get(name)
      if (group) group.push(asked)
      else groups.set(name, [asked])
    }
  }
  return sorted([...groups.values()])
}

/**
 * From which cosine on two questions are taken to mean the same. With Parley's own model, 47 questions in 20 meanings then come to 25
 * groups, two of which mix meanings: short questions about the same name. At 0.65 none does, and there are 38 groups.
 */
const ALIKE = 0.55

/**
 * Joins groups that mean the same: each goes to the larger one that it is most like.
 * @param vectors of their first questions, in their order
 */
export function joined(groups: readonly Group[], vectors: readonly number[][]): Group[] {
  const kept: { group: Group; vector: number[] }[] = []
  for (const [at, group] of groups.entries()) {
    const vector = vectors[at] ?? []
    const [best] = kept
      .map((each) => ({ ...each, likeness: cosine(each.vector, vector) }))
      .sort((a, b) => b.likeness - a.likeness)
    if (best && best.likeness >= ALIKE) best.group.push(...group)
    else kept.push({ group: [...group], vector })
  }
  return sorted(kept.map(({ group }) => group))
}

function cosine(a: readonly number[], b: readonly number[]): number {
  const product = (x: readonly number[], y: readonly number[]) =>
    x.reduce((sum, value, at) => sum + value * (y[at] ?? 0), 0)
  return product(a, b) / Math.sqrt(product(a, a) * product(b, b) || 1)
}
