/** `/v1/conversations`: conversations and their items. A conversation may exist before anything is said in it. */
import * as v from 'valibot'
import type { Access } from '../../auth/access'
import { requireRate } from '../../auth/authenticate'
import { openConversation } from '../../conversation/conversations'
import { deleteConversation } from '../../conversation/expiry'
import * as messages from '../../conversation/messages'
import { badRequest } from '../../errors'
import { once } from '../../lib/once'
import { type Assistant, DEFAULT_ASSISTANT, findAssistant, listAssistants } from '../../registry/assistants'
import type { SearchParameters } from '../../search/types'
import { parseJson, readText } from '../http/body'
import { findHistory, findOpenModel, openHere, openTo, requireListed } from '../http/chat-names'
import { originOf, type RequestRecord } from '../http/request-log'
import type { OpenCall } from '../http/router'
import { itemId, readItemId } from './ids'
import { type Caller, callerOf, checkBody, InvalidParameter, openConversationRow, textOf } from './question'

/** The bodies of requests, limited as OpenAI limits them. Made at first use, because start-up is short of time. */
const bodies = once(() => {
  const Metadata = v.pipe(
    v.record(v.pipe(v.string(), v.maxLength(64)), v.pipe(v.string(), v.maxLength(512))),
    v.check((pairs) => Object.keys(pairs).length <= 16, 'At most 16 pairs.'),
  )
  const Items = v.pipe(
    v.array(
      v.looseObject({
        type: v.optional(v.string()),
        role: v.optional(v.string()),
        content: v.optional(v.unknown()),
      }),
    ),
    v.maxLength(20, 'At most 20 items at a time.'),
  )
  return {
    New: v.looseObject({ metadata: v.nullish(Metadata), items: v.nullish(Items) }),
    Change: v.looseObject({ metadata: Metadata }),
    More: v.looseObject({ items: v.pipe(Items, v.minLength(1)) }),
  }
})

const LONGEST_MESSAGE = 100_000

const readBody = async ({ request }: OpenCall): Promise<unknown> => {
  const text = await readText(request)
  return text.trim() === '' ? {} : parseJson(text)
}

export async function createConversation(call: OpenCall): Promise<object> {
  const { env } = call
  const caller = await callerOf(call, 'say')
  // Each creation makes an object and a row, like a first question.
  await requireRate(env, 'RATE_LIMIT_TURNS', caller.access)
  const { metadata, items } = checkBody(bodies().New, await readBody(call))
  const said = messagesIn(items ?? [])
  const home = await homeOf(env, caller.access, call.record)
  if (said.length > 0) await requireTrusted(env, caller, home)
  const id = await openConversation(env, caller.asker, {
    protocol: 'openai',
    ...home,
    title: '',
    details: { additional_info: metadata ?? {} },
  })
  const row = await openConversationRow(env, caller.asker, id)
  await say(env, caller, row, said)
  return shown(row)
}

export async function getConversation(call: OpenCall): Promise<object> {
  const { asker } = await callerOf(call, 'get')
  return shown(await openConversationRow(call.env, asker, call.path.id ?? ''))
}

/** The metadata given replaces all that was there. */
export async function updateConversation(call: OpenCall): Promise<object> {
  const { env, path } = call
  const { asker } = await callerOf(call, 'update')
  const row = await openConversationRow(env, asker, path.id ?? '')
  const { metadata } = checkBody(bodies().Change, await readBody(call))
  const gone = Object.fromEntries(Object.keys(metadataOf(row)).map((name) => [name, null]))
  await messages.changeMemory(env, asker, row, { additional_info: { ...gone, ...metadata } })
  return shown(await openConversationRow(env, asker, row.id))
}

export async function removeConversation(call: OpenCall): Promise<object> {
  const { asker } = await callerOf(call, 'delete')
  const { id } = await openConversationRow(call.env, asker, call.path.id ?? '')
  await deleteConversation(call.env, asker, id, originOf(call.record))
  return { id, object: 'conversation.deleted', deleted: true }
}

export async function listItems(call: OpenCall): Promise<object> {
  const { env, path, query } = call
  const { asker } = await callerOf(call, 'get')
  const { limit, order, after } = pageOf(query)
  const row = await openConversationRow(env, asker, path.id ?? '')
  const items = await messages.itemsOf(env, row)
  if (order === 'desc') items.reverse()
  const from = after ? 1 + items.indexOf(itemIn(items, row, after)) : 0
  const page = items.slice(from, from + limit).map((item) => shownItem(row, item))
  return shownPage(page, from + limit < items.length)
}

export async function getItem(call: OpenCall): Promise<object> {
  const { env, path } = call
  const { asker } = await callerOf(call, 'get')
  const row = await openConversationRow(env, asker, path.id ?? '')
  return shownItem(row, itemIn(await messages.itemsOf(env, row), row, path.item ?? ''))
}

/** The rest of its turn stays. */
export async function removeItem(call: OpenCall): Promise<object> {
  const { env, path } = call
  const { asker } = await callerOf(call, 'delete')
  const row = await openConversationRow(env, asker, path.id ?? '')
  await messages.deleteItem(env, asker, row, itemIn(await messages.itemsOf(env, row), row, path.item ?? ''))
  return shown(row)
}

export async function createItems(call: OpenCall): Promise<object> {
  const { env, path } = call
  const caller = await callerOf(call, 'say')
  const row = await openConversationRow(env, caller.asker, path.id ?? '')
  const said = messagesIn(checkBody(bodies().More, await readBody(call)).items)
  await requireTrusted(env, caller, row)
  return shownPage(await say(env, caller, row, said), false)
}

const shown = (row: messages.MemoryRow) => ({
  id: row.id,
  object: 'conversation',
  created_at: Math.floor(row.createdAt / 1000),
  metadata: metadataOf(row),
})

/** Other protocols may store values other than texts there. */
const metadataOf = (row: messages.MemoryRow): Record<string, string> =>
  Object.fromEntries(
    Object.entries(messages.memoryOf(row).info ?? {}).map(([name, value]) => [
      name,
      typeof value === 'string' ? value : JSON.stringify(value),
    ]),
  )

const shownItem = ({ id }: messages.MemoryRow, item: messages.Item) =>
  messageItem(
    item,
    itemId(
      id,
      item.turn === undefined ? { document: item.documentId } : { turn: item.turn, role: item.role },
    ),
  )

/** @throws InvalidParameter 404 */
function itemIn(items: readonly messages.Item[], row: messages.MemoryRow, id: string): messages.Item {
  const place = readItemId(row.id, id)
  const found = items.find(({ documentId, turn, role }) =>
    place && 'document' in place
      ? documentId === place.document
      : place && turn === place.turn && role === place.role,
  )
  if (found) return found
  throw new InvalidParameter(`Item with id '${id}' not found in this conversation.`, null, undefined, 404)
}

interface Home {
  historyId: string
  modelId: string
  ttl: number
}

/**
 * Where a new conversation keeps its messages: in the history of the assistant that the key is most likely to ask.
 * That is the one that it is bound to, or `default`, or the first one. If another assistant is asked, it gets these
 * messages as a transcript (http/chat-names.ts).
 */
async function homeOf(env: Cloudflare.Env, access: Access, record: RequestRecord): Promise<Home> {
  const { assistant: bound } = access.limits
  const usual = await findAssistant(env, bound ?? DEFAULT_ASSISTANT)
  const candidates = function* (others: Assistant[]) {
    if (usual) yield usual
    if (bound === undefined) yield* others
  }
  const isUsual = usual !== undefined && openTo(access, usual) !== undefined
  for (const assistant of candidates(isUsual ? [] : await listAssistants(env))) {
    const model = openHere(access, assistant, record) && (await findOpenModel(env, [access], assistant.model))
    if (model) return { historyId: await findHistory(env, model), modelId: model.id, ttl: model.ttl }
  }
  if (isUsual) requireListed(usual, record)
  throw badRequest('This key may ask no assistant, so there is nobody to converse with.')
}

/**
 * Messages that are written into a history become part of later prompts, and no guardrail judges them.
 * @throws ApiError 403 for a key made for pages, 400 where the conversation's model has a guardrail
 */
async function requireTrusted(
  env: Cloudflare.Env,
  { access }: Caller,
  row: Pick<messages.MemoryRow, 'modelId'>,
): Promise<void> {
  if (access.forPages) {
    throw new InvalidParameter(
      'A key made for pages cannot write items into a conversation. Use a key without limits, from a server.',
      'items',
      'items_not_allowed',
      403,
    )
  }
  if (!(await messages.isJudged(env, row))) return
  throw new InvalidParameter(
    'The model of this conversation has an `input_guardrail_prompt`, which does not judge items that are written into the history. Ask with POST /v1/responses instead.',
    'items',
  )
}

interface Message {
  role: 'user' | 'assistant'
  text: string
}

/** @throws InvalidParameter for an item that is no message of a user or an assistant, or has no text */
function messagesIn(items: readonly { type?: string; role?: string; content?: unknown }[]): Message[] {
  return items.map(({ type = 'message', role, content }, at) => {
    const place = `items[${at}]`
    if (type !== 'message' || (role !== 'user' && role !== 'assistant')) {
      throw new InvalidParameter(
        `\`${place}\`: A conversation keeps messages of the roles \`user\` and \`assistant\`, and no other items.`,
        place,
      )
    }
    const text = textOf(content, `${place}.content`)
    if (text.trim() === '') throw new InvalidParameter(`\`${place}.content\` has no text.`, place)
    if (text.length > LONGEST_MESSAGE) {
      throw new InvalidParameter(
        `\`${place}.content\` is longer than ${LONGEST_MESSAGE} characters.`,
        place,
        'string_above_max_length',
      )
    }
    return { role, text }
  })
}

/** Adds messages: a question with the answer after it is one turn. @returns them as items */
async function say(
  env: Cloudflare.Env,
  { asker }: Caller,
  row: messages.MemoryRow,
  said: readonly Message[],
) {
  const items: ReturnType<typeof messageItem>[] = []
  for (let at = 0; at < said.length; at++) {
    const message = said[at]!
    const answer = message.role === 'user' && said[at + 1]?.role === 'assistant' ? said[++at] : undefined
    const pair = answer ? [message, answer] : [message]
    const textBy = (role: Message['role']) => pair.find((each) => each.role === role)?.text ?? ''
    const turn = await messages.addMessage(env, asker, row, {
      input: textBy('user'),
      response: textBy('assistant'),
      more: {},
    })
    for (const each of pair) items.push(messageItem(each, itemId(row.id, { turn, role: each.role })))
  }
  return items
}

// =============================================================================
// Items of conversations as OpenAI's API shows them. Pure.

interface Said {
  role: 'user' | 'assistant'
  text: string
}

export const messageItem = ({ role, text }: Said, id: string) => ({
  id,
  type: 'message',
  role,
  status: 'completed',
  content: [
    role === 'user'
      ? { type: 'input_text', text }
      : { type: 'output_text', text, annotations: [], logprobs: [] },
  ],
})

type MessageItem = ReturnType<typeof messageItem>

export const shownPage = (data: MessageItem[], more: boolean) => ({
  object: 'list',
  data,
  first_id: data[0]?.id ?? null,
  last_id: data.at(-1)?.id ?? null,
  has_more: more,
})

const MOST_ITEMS = 100
const USUAL_ITEMS = 20

interface ItemPage {
  limit: number
  order: 'asc' | 'desc'
  after: string | undefined
}

/** @throws InvalidParameter */
export function pageOf({ limit, order = 'desc', after }: SearchParameters): ItemPage {
  const most = limit === undefined ? USUAL_ITEMS : Number(limit)
  if (!Number.isInteger(most) || most < 1 || most > MOST_ITEMS) {
    throw new InvalidParameter(`\`limit\` must be a number from 1 to ${MOST_ITEMS}.`, 'limit')
  }
  if (order !== 'asc' && order !== 'desc') {
    throw new InvalidParameter('`order` must be `asc` or `desc`.', 'order')
  }
  return { limit: most, order, after }
}
