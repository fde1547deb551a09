/** n8n's chat widget, with Parley instead of a workflow's webhook. */
import * as v from 'valibot'
import { once } from '../../lib/once'
import { textOf } from '../../lib/parts'
import { shaped } from '../http/body'
import type { ChatParties } from '../http/chat-names'
import { type Answered, type App, ASKS, type OpenCall, openRoute, register } from '../http/router'
import { askChat, openQuestion, turnsOf } from '../shared/assistant'
import { CitationLinks, linkedAnswer, type SourceFields, sourcesOf } from '../shared/sources'
import { streamAnswer, type TurnEncoder, turnEncoder, wholeAnswer } from '../shared/stream'

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

async function serve(call: OpenCall): Promise<Answered> {
  const { parties, bodyText, body } = await openQuestion(call, 'n8n', (given) => {
    const { action, sessionId } = shaped(Body(), given)
    return action === 'sendMessage' ? { name: sessionId } : undefined
  })
  const asked = shaped(Body(), body)
  if (asked.action === 'loadPreviousSession') return previous(parties, asked.sessionId)
  const { assistant } = parties
  const answering = await askChat(parties, {
    chat: asked.sessionId,
    question: asked.chatInput,
    labels: true,
    protocol: 'n8n',
    bodyText,
  })
  // With `enableStreaming` the widget asks for plain text, and reads a JSON object on each line.
  if (call.request.headers.get('accept')?.includes('text/plain')) {
    return streamAnswer(answering, linesEncoder(assistant), {
      headers: { 'content-type': 'application/jsonl; charset=utf-8' },
      heartbeat: '\n',
      opensAt: 'text',
    })
  }
  return wholeAnswer(answering, (turn) => ({ output: linkedAnswer(turn, assistant) }))
}

/** The messages of a session in LangChain's form, as n8n stores them. */
async function previous(parties: ChatParties, session: string): Promise<object> {
  const { turns } = await turnsOf(parties, session)
  const message = (kind: string, content: string) => ({
    id: ['langchain_core', 'messages', kind],
    kwargs: { content },
  })
  return {
    data: turns
      .filter(({ answer }) => answer.length > 0)
      .flatMap((turn) => [
        message('HumanMessage', textOf(turn.question)),
        message('AIMessage', linkedAnswer(turn, parties.assistant)),
      ]),
  }
}

export const mountN8n = (app: App): void => register(app, [openRoute('POST', '/n8n/:assistant', serve, ASKS)])

// =============================================================================
// Writes a turn as n8n's widget reads it: lines of JSON, with citations as Markdown links.

const line = (content: unknown): string => `${JSON.stringify(content)}\n`

/** Each line is an object: `begin`, an `item` for each piece of text, and `end` or `error`. */
export const linesEncoder = (fields: SourceFields): TurnEncoder =>
  turnEncoder((turn) => {
    const links = new CitationLinks()
    return {
      question: () => line({ type: 'begin' }),
      retrieval: () => void links.cite(sourcesOf(turn.passages, fields)),
      delta: ({ text }) => item(links.add(text)),
      done: () => item(links.end()) + line({ type: 'end' }),
      fail: ({ message }) => item(links.end()) + line({ type: 'error', content: message }),
    }
  })

const item = (content: string): string => (content === '' ? '' : line({ type: 'item', content }))
