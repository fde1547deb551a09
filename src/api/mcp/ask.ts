/** The tool `ask`: a question to the assistant, with progress while its answer is written. */
import { chatOf } from '../../conversation/ask'
import type { Failure } from '../../errors'
import { inFull } from '../../errors'
import { textOf } from '../../lib/parts'
import type { TurnEvent } from '../../turn/events'
import { emptyTurn, fold, type Turn } from '../../turn/fold'
import { type RpcId, rpcFrame, rpcResult } from '../http/json-rpc'
import { askAssistant } from '../shared/assistant'
import { chatReader } from '../shared/read'
import { type SourceFields, sourceId, sourcesOf } from '../shared/sources'
import { streamTurn, type TurnEncoder, wholeTurn } from '../shared/stream'
import { failedText, type ToolResult } from './result'
import type { Session } from './session'

export interface AskInput {
  question: string
  conversation_id?: string | undefined
}

const ask = (session: Session, { question, conversation_id: conversationId }: AskInput) => {
  const { env, request, access, assistant, user, prefetch, call, bodyText } = session
  return askAssistant({
    env,
    request,
    access,
    assistant,
    user,
    record: call.record,
    prefetch,
    question,
    chat: chatOf(conversationId),
    protocol: 'mcp',
    bodyText,
  })
}

/** @throws ApiError */
export async function askWhole(session: Session, input: AskInput): Promise<ToolResult> {
  const { events, resume } = await ask(session, input)
  return answerOf(await wholeTurn(chatReader(events, resume)), session.assistant)
}

/** @param token the client's progress token; absent: it wants no progress. @throws ApiError */
export async function askStreaming(
  session: Session,
  id: RpcId,
  input: AskInput,
  token: RpcId | undefined,
): Promise<Response> {
  const { events, resume, conversationId } = await ask(session, input)
  return streamTurn(chatReader(events, resume), new AskEncoder(id, session.assistant, token), {
    headers: { 'x-parley-conversation-id': conversationId },
    opensAt: 'once',
  })
}

/** Writes a turn as progress notifications and one reply. */
export class AskEncoder implements TurnEncoder {
  readonly #id: RpcId
  readonly #fields: SourceFields
  readonly #turn: Turn = emptyTurn()
  /** a notification up to its number; undefined: the client wants none */
  readonly #before: string | undefined
  #progress = 0

  constructor(id: RpcId, fields: SourceFields, token: RpcId | undefined) {
    this.#id = id
    this.#fields = fields
    const head = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: token } }
    if (token !== undefined) {
      this.#before = `event: message\ndata: ${JSON.stringify(head).slice(0, -2)},"progress":`
    }
  }

  encode(event: TurnEvent): string {
    fold(this.#turn, event)
    switch (event.type) {
      case 'retrieval':
        return this.#notify(`${this.#turn.passages.length} documents found.`, 1)
      case 'delta':
        return this.#notify(event.text, event.text.length)
      case 'done':
        return rpcFrame(rpcResult(this.#id, answerOf(this.#turn, this.#fields)))
      default:
        return ''
    }
  }

  fail(failure: Failure): string {
    return rpcFrame(rpcResult(this.#id, failedText(inFull(failure))))
  }

  /** @param steps the progress so far. The total is unknown, because the length of the answer is */
  #notify(text: string, steps: number): string {
    if (this.#before === undefined || text === '') return ''
    this.#progress += steps
    return `${this.#before}${this.#progress},"message":${JSON.stringify(text)}}}\n\n`
  }
}

/** The whole answer, with the cited sources in the text, or all if none is cited. @param turn one that is done */
export function answerOf(turn: Turn, fields: SourceFields): ToolResult {
  const answer = textOf(turn.answer)
  const cited = new Set(
    turn.citations.map(({ collection, document_id }) => sourceId(collection, document_id)),
  )
  const sources = sourcesOf(turn.passages, fields).map(({ id, title, url }) => ({
    id,
    title,
    ...(url !== undefined && { url }),
    cited: cited.has(id),
  }))
  const listed = sources.filter(({ cited: isCited }) => isCited || cited.size === 0)
  const lines = listed.map(({ id, title, url }) => `- ${title} (${url ?? id})`)
  const said = lines.length === 0 ? answer : `${answer}\n\nSources:\n${lines.join('\n')}`
  return {
    content: [{ type: 'text', text: said }],
    structuredContent: {
      conversation_id: turn.conversationId,
      turn: turn.turn,
      answer,
      sources,
      ...(turn.suggestions && { followups: turn.suggestions }),
    },
  }
}
