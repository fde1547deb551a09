/** n8n's chat widget, with Parley instead of a workflow's webhook. */
import * as v from 'valibot'
import type { Failure } from '../../errors'
import { once } from '../../lib/once'
import { textOf } from '../../lib/parts'
import type { TurnEvent } from '../../turn/events'
import { emptyTurn, fold, type Turn } from '../../turn/fold'
import { shaped } from '../http/body'
import type { ChatParties } from '../http/chat-names'
import { deliver, json } from '../http/deliver'
import { type App, type OpenCall, register } from '../http/router'
import { askChat, openQuestion, turnsOf } from '../shared/assistant'
import { CitationLinks, linkedAnswer, type SourceFields, sourcesOf } from '../shared/sources'
import { chatReader, streamTurn, type TurnEncoder, wholeTurn } from '../shared/stream'

const Session = once(() => v.pipe(v.string(), v.nonEmpty(), v.maxLength(512)))

const Body = once(() =>
  v.variant('action', [
    v.looseObject({
      action: v.literal('sendMessage'),
      sessionId: Session(),
      chatInput: v.pipe(
        v.string(),
        v.check((text) => text.trim() !== '', 'Expected a question.'),
      ),
    }),
    v.looseObject({ action: v.literal('loadPreviousSession'), sessionId: Session() }),
  ]),
)

async function serve(call: OpenCall): Promise<Response> {
  const { parties, bodyText, body } = await openQuestion(call, 'n8n', (given) => {
    const { action, sessionId } = shaped(Body(), given)
    return action === 'sendMessage' ? { name: sessionId } : undefined
  })
  const asked = shaped(Body(), body)
  if (asked.action === 'loadPreviousSession') return previous(parties, asked.sessionId)
  const { assistant } = parties
  const { events, resume, conversationId, delivery } = await askChat(parties, {
    chat: asked.sessionId,
    question: asked.chatInput,
    labels: true,
    protocol: 'n8n',
    bodyText,
  })
  const headers = { 'x-parley-conversation-id': conversationId }
  const read = chatReader(events, resume)
  // With `enableStreaming` the widget asks for plain text, and reads a JSON object on each line.
  if (call.request.headers.get('accept')?.includes('text/plain')) {
    return streamTurn(read, new LinesEncoder(assistant), {
      headers: { ...headers, 'content-type': 'application/jsonl; charset=utf-8' },
      heartbeat: '\n',
      opensAt: 'text',
    })
  }
  const turn = await wholeTurn(read)
  return deliver({ output: linkedAnswer(turn, assistant) }, headers, delivery(turn.turn))
}

/** The messages of a session in LangChain's form, as n8n stores them. */
async function previous(parties: ChatParties, session: string): Promise<Response> {
  const { turns } = await turnsOf(parties, session)
  const message = (kind: string, content: string) => ({
    id: ['langchain_core', 'messages', kind],
    kwargs: { content },
  })
  return json({
    data: turns
      .filter(({ answer }) => answer.length > 0)
      .flatMap((turn) => [
        message('HumanMessage', textOf(turn.question)),
        message('AIMessage', linkedAnswer(turn, parties.assistant)),
      ]),
  })
}

export const mountN8n = (app: App): void =>
  register(app, [{ method: 'POST', path: '/n8n/:assistant', open: true, begins: () => true, handle: serve }])

// =============================================================================
// Writes a turn as n8n's widget reads it: lines of JSON, with citations as Markdown links.

const line = (content: unknown): string => `${JSON.stringify(content)}\n`

/** Each line is an object: `begin`, an `item` for each piece of text, and `end` or `error`. */
export class LinesEncoder implements TurnEncoder {
  readonly #fields: SourceFields
  readonly #turn: Turn = emptyTurn()
  readonly #links = new CitationLinks()

  constructor(fields: SourceFields) {
    this.#fields = fields
  }

  encode(event: TurnEvent): string {
    fold(this.#turn, event)
    switch (event.type) {
      case 'question':
        return line({ type: 'begin' })
      case 'retrieval':
        this.#links.cite(sourcesOf(this.#turn.passages, this.#fields))
        return ''
      case 'delta':
        return item(this.#links.add(event.text))
      case 'done':
        return item(this.#links.end()) + line({ type: 'end' })
      default:
        return ''
    }
  }

  fail({ message }: Failure): string {
    return item(this.#links.end()) + line({ type: 'error', content: message })
  }
}

const item = (text: string): string =>
  text === '' ? '' : `{"type":"item","content":${JSON.stringify(text)}}\n`
