/** One of two answers that stand side by side, as the server keeps it. */
import { orElse, Refusal, read, send } from '../api'
import { type ChatSettings, requestOf } from '../chat/settings'
import { refOf } from '../chat/titles'
import type { PromptSource, TracedTurn } from '../chat/wire'
import type { RecordedConversation, RecordedTurn } from '../conversations/record'
import { count, duration } from '../parts/format'

/** A turn's address: its conversation and its number. */
export interface TurnAddress {
  conversation: string
  turn: number
}

export interface Side {
  at: TurnAddress
  turn: RecordedTurn
  /** of its conversation */
  asked: Pick<RecordedConversation, 'model_id' | 'protocol'>
  /** undefined where the key may not read traces */
  traced: TracedTurn | undefined
}

/** `<conversation>/<turn>`; undefined for anything else. */
export function parseAddress(text: string | null): TurnAddress | undefined {
  const [, conversation, turn] = /^(.+)\/([1-9]\d{0,8})$/.exec(text ?? '') ?? []
  return conversation && turn ? { conversation, turn: Number(turn) } : undefined
}

export const addressOf = ({ conversation, turn }: TurnAddress): string => `${conversation}/${turn}`

/** @throws Refusal */
export async function readSide(at: TurnAddress, signal: AbortSignal): Promise<Side> {
  const path = `/conversations/${encodeURIComponent(at.conversation)}`
  const [{ turns, model_id, protocol }, traces] = await Promise.all([
    read<RecordedConversation>(`${path}?before=${at.turn + 1}&limit=1`, signal),
    orElse(read<{ turns: TracedTurn[] }>(`${path}/trace?turn=${at.turn}`, signal), { turns: [] }, [401]),
  ])
  const turn = turns.find((each) => each.turn === at.turn)
  if (!turn) throw new Refusal(404, 'This answer is not kept any more.')
  return { at, turn, asked: { model_id, protocol }, traced: traces.turns[0] }
}

/** The question to ask again: a follow-up as it was rewritten, because it is asked without what was said before. */
export const alone = ({ turn, traced }: Side): string =>
  turn.standalone ?? traced?.trace.standalone ?? turn.question

/** Asks the question of an answer again. @returns the address of the new answer @throws Refusal */
export async function askAgain(
  from: Side,
  asked: ChatSettings,
  headers?: Record<string, string>,
): Promise<string> {
  const { path, body } = requestOf({ ...asked, followups: false })
  const question = { question: alone(from), ...body }
  const answered = await send<{ conversation_id: string; turn: number }>('POST', path, question, headers)
  return addressOf({ conversation: answered.conversation_id, turn: answered.turn })
}

/** The documents that an answer's searches found, the best first. */
export const foundBy = ({ traced }: Side): PromptSource[] =>
  traced?.trace.searches.flatMap(({ collection = '', hits = [] }) =>
    hits.map(({ id = '' }) => ({ collection, document_id: id })),
  ) ?? []

/** What differs between two answers: only what is not the same. @param title what a document is called */
export function differences(left: Side, right: Side, title: (ref: PromptSource) => string) {
  const [foundLeft, foundRight] = [foundBy(left), foundBy(right)]
  const named = (refs: readonly PromptSource[]) =>
    [...new Map(refs.map((ref) => [refOf(ref), title(ref)])).values()].join(', ')
  const only = (these: PromptSource[], those: PromptSource[]) =>
    named(these.filter((ref) => !those.some((other) => refOf(other) === refOf(ref))))
  const rows: [string, (side: Side, other: PromptSource[], own: PromptSource[]) => string][] = [
    ['Model', ({ turn }) => turn.usage.model],
    ['Found only here', (_, other, own) => only(own, other)],
    ['Cited', ({ turn }) => named(turn.citations)],
    ['Tokens in', ({ turn }) => count(turn.usage.input_tokens ?? 0)],
    ['Tokens out', ({ turn }) => count(turn.usage.output_tokens ?? 0)],
    ['Time', ({ turn }) => (turn.timings.finished === undefined ? '' : duration(turn.timings.finished))],
  ]
  return rows
    .map(([name, of]) => ({
      name,
      left: of(left, foundRight, foundLeft),
      right: of(right, foundLeft, foundRight),
    }))
    .filter((row) => row.left !== row.right)
}
