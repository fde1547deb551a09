/** n8n's chat widget, with Parley instead of a workflow's webhook. */
import * as v from 'valibot'
import { ApiError, type Failure } from '../../errors'
import { once } from '../../once'
import { textOf } from '../../parts'
import type { TurnEvent } from '../../turn/events'
import { parseJson, readText } from '../edge/body'
import type { ChatParties } from '../edge/chat-names'
import { openParties } from '../edge/chat-parties'
import { deliver } from '../edge/deliver'
import { json } from '../edge/response'
import { type App, type OpenCall, register } from '../edge/route'
import { askChat, turnsOf } from '../turn/chats'
import { requireOwn } from '../turn/foreign'
import { CitationLinks } from '../turn/linked-citations'
import { chatReader } from '../turn/read'
import { type SourceFields, sourcesOf } from '../turn/sources'
import { streamTurn, type TurnEncoder, wholeTurn } from '../turn/stream'

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
  const parties = await openParties(call)
  const bodyText = await readText(call.request)
  const body = parseJson(bodyText)
  requireOwn(body, 'n8n', parties.assistant.name)
  const parsed = v.safeParse(Body(), body, { abortEarly: true })
  if (!parsed.success) {
    const [issue] = parsed.issues
    throw new ApiError(400, `\`${v.getDotPath(issue) ?? 'body'}\`: ${issue.message}`)
  }
  const { output } = parsed
  if (output.action === 'loadPreviousSession') return previous(parties, output.sessionId)
  const { assistant } = parties
  const { events, resume, conversationId, delivery } = await askChat(call, parties, {
    chat: output.sessionId,
    question: output.chatInput,
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
  const links = new CitationLinks(sourcesOf(turn.passages, assistant))
  return deliver({ output: links.add(textOf(turn.answer)) + links.end() }, headers, delivery(turn.turn))
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
      .filter(({ answer }) => answer !== '')
      .flatMap(({ question, answer }) => [message('HumanMessage', question), message('AIMessage', answer)]),
  })
}

const line = (content: unknown): string => `${JSON.stringify(content)}\n`

class LinesEncoder implements TurnEncoder {
  readonly #fields: SourceFields
  #links = new CitationLinks([])

  constructor(fields: SourceFields) {
    this.#fields = fields
  }

  encode(event: TurnEvent): string {
    switch (event.type) {
      case 'question':
        return line({ type: 'begin' })
      case 'retrieval':
        this.#links = new CitationLinks(sourcesOf(event.passages, this.#fields))
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

export const mountN8n = (app: App): void =>
  register(app, [{ method: 'POST', path: '/n8n/:assistant', open: true, begins: () => true, handle: serve }])
