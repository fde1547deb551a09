/** POST /v1/chat/completions: an assistant asked by its name as a model. */
import type { Assistant } from '../../conversation/assistants'
import type { Override } from '../../conversation/overrides'
import { ApiError } from '../../errors'
import { askAssistant, type Changes } from '../assistants/ask'
import { type Chat, type ChatParties, findChat } from '../assistants/chat'
import { admitAsker, openAssistant } from '../assistants/open'
import { namedUser } from '../edge/admit-turn'
import { deliver } from '../edge/deliver'
import { streamTurn, wholeTurn } from '../streamed-turn'
import { eventReader } from '../turn-events'
import { parseJson, readText } from '../typesense/body'
import type { OpenCall } from '../typesense/route'
import { CompletionEncoder, type CompletionShape, completion } from './encoder'
import { UnknownModel } from './errors'
import { type ChatCompletionRequest, readChatCompletion } from './request'

export async function complete({ env, request, query, record }: OpenCall): Promise<Response> {
  const access = await admitAsker(env, request, record)
  const bodyText = await readText(request)
  const asked = readChatCompletion(parseJson(bodyText))
  const { model, question, transcript, stream, includeUsage } = asked
  const assistant = await openAssistant(env, access, model).catch((error) => {
    throw error instanceof ApiError && error.status === 404 ? new UnknownModel(model) : error
  })
  const user = namedUser(request, query) ?? asked.user
  const parties: ChatParties = { env, access, assistant, user }
  const { conversationId, events, delivery } = await askAssistant({
    ...parties,
    ...(await chatOf(parties, request, asked)),
    request,
    record,
    question,
    transcript,
    changes: changesOf(assistant, asked, access.owner === 'admin'),
    stream,
    protocol: 'openai',
    bodyText,
  })
  const shape: CompletionShape = { model, created: Math.floor(record.started / 1000), fields: assistant }
  const headers = { 'x-parley-conversation-id': conversationId }
  const read = eventReader(events)
  if (stream) {
    return streamTurn(read, new CompletionEncoder(shape, includeUsage), { headers, opensAt: 'text' })
  }
  const turn = await wholeTurn(read)
  return deliver(completion(turn, shape), headers, delivery(turn.turn))
}

async function chatOf(
  parties: ChatParties,
  request: Request,
  { conversationId }: ChatCompletionRequest,
): Promise<Chat | undefined> {
  const name = conversationId ?? request.headers.get('x-conversation-id')
  return name ? findChat(parties, name) : undefined
}

/** What the assistant lets a request change. Clients send the rest unasked: it is passed over. */
function changesOf(
  { overrides }: Assistant,
  { sampling, instructions }: ChatCompletionRequest,
  isAdmin: boolean,
): Changes {
  const allows = (name: Override) => isAdmin || overrides.includes(name)
  const { temperature, top_p, seed, max_tokens } = sampling
  return {
    model: {
      ...(temperature !== undefined && allows('temperature') && { temperature }),
      ...(top_p !== undefined && allows('top_p') && { top_p }),
      ...(seed !== undefined && allows('seed') && { seed }),
      ...(max_tokens !== undefined && allows('max_response_tokens') && { max_tokens }),
    },
    // Clients send a system prompt by default: whoever holds a page's key must not rewrite the assistant by it.
    ...(isAdmin && instructions !== '' && { prompt: { append: [instructions] } }),
  }
}
