/** Lists, stores, reads and deletes assistants, and shows a page what it may know of one. */
import { requireAllCollections, requireCollections } from '../../auth/authenticate'
import { readable } from '../../conversation/conversations'
import { ApiError, badRequest } from '../../errors'
import { isWithin } from '../../lib/hours'
import { MOST_FILES, MOST_PICTURES } from '../../lib/text-file'
import {
  type AssistantConfig,
  deleteAssistant,
  getAssistant,
  listAssistants,
  putAssistant,
  readAssistant,
  searchesOf,
} from '../../registry/assistants'
import { findModel } from '../../registry/models'
import { MAX_Q_BYTES } from '../../search/limits'
import { byRank } from '../../search/merge-lists'
import { asQuery } from '../../search/text/query'
import type { Hit } from '../../search/types'
import { isBuiltIn } from '../../tools/tool'
import { passagesOf } from '../../turn/passage'
import { defaultPromptOf } from '../../turn/prompt'
import { hitsOf } from '../../turn/retrieve'
import { handoverSecret, requestPeople } from '../../webhooks/send'
import { askerWith } from '../http/admit-turn'
import { openAssistant } from '../http/chat-names'
import { ofRequest, planRetrieval, runSearches } from '../http/plan'
import { roomForFiles, takesPictures } from '../shared/assistant'
import { sourcesOf } from '../shared/sources'
import type { Handlers, Serving } from './route'

const namesOf = (assistant: AssistantConfig): string[] =>
  searchesOf(assistant).map(({ collection }) => collection)

/** @throws ApiError 401 for an assistant of a collection that the key does not name */
async function requireOwn({
  env,
  access,
  record,
  path: { name },
}: Pick<Serving<'putAssistant'>, 'env' | 'access' | 'record' | 'path'>): Promise<void> {
  const present = await readAssistant(env, name)
  if (present) requireCollections(access, record.action!, namesOf(present), record)
}

/** Words around those that match. */
const SNIPPETS = { highlight_affix_num_tokens: '8', snippet_threshold: '20' }
/** UTF-16 units of a text in which nothing matches. */
const LONGEST_SNIPPET = 160

export const assistants = {
  async listAssistants({ env }) {
    return { assistants: await listAssistants(env) }
  },

  /**
   * Stores an assistant. A key that is bound to an assistant needs no right to its collections. So the key that stores an
   * assistant has to allow its collections by name, both those before and after the change. Otherwise it could redirect
   * visitors' questions to collections of others.
   */
  async putAssistant({ env, access, record, path, body }) {
    await requireOwn({ env, access, record, path })
    // A stored tool acts with secrets of the server's, whoever asks.
    if (body.tools?.some((tool) => !isBuiltIn(tool))) requireAllCollections({ access, record })
    requireCollections(access, record.action!, namesOf(body), record)
    const model = body.system_prompt === undefined && (await findModel(env, body.model))
    // What is sent is seen, and can be changed. A model's own prompt stays the model's.
    const prompt = model && model.system_prompt === undefined ? defaultPromptOf(model) : undefined
    return putAssistant(env, path.name, { ...(prompt && { system_prompt: prompt }), ...body })
  },

  /** With the secret by which the receiver of a hand-over knows that this server sent it. */
  async getAssistant({ env, path }) {
    const assistant = await getAssistant(env, path.name)
    const signs = assistant.handover?.webhook !== undefined
    return { ...assistant, ...(signs && { handover_secret: await handoverSecret(env, path.name) }) }
  },

  async deleteAssistant(served) {
    await requireOwn(served)
    return deleteAssistant(served.env, served.path.name)
  },

  async frontOfAssistant(served) {
    const assistant = await openAssistant(served, served.access, served.path.assistant)
    const { name, questions, followups, title_field, url_field, citation_field } = assistant
    const model = assistant.attachments && (await findModel(served.env, assistant.model))
    const attachments = model
      ? {
          files: MOST_FILES,
          bytes: roomForFiles(model),
          ...(takesPictures(model) && { pictures: MOST_PICTURES }),
        }
      : undefined
    const { webhook, hours, outside, ...people } = assistant.handover ?? {}
    const isOutside = hours !== undefined && !isWithin(hours, Date.now())
    const handover = assistant.handover && {
      ...people,
      ...(webhook !== undefined && { form: true }),
      ...(isOutside && { outside: outside ?? '' }),
    }
    return { name, questions, followups, title_field, url_field, citation_field, attachments, handover }
  },

  /** What the searches of the assistant find by words alone, for a page that shows results while somebody types. */
  async findDocuments(served) {
    const { env, access, request, record, path, query } = served
    const assistant = await openAssistant(served, access, path.assistant)
    if (!assistant.search)
      throw badRequest(`The assistant \`${assistant.name}\` takes no searches: give it \`"search": true\`.`)
    const q = asQuery(access.embedded.q ?? query.q, MAX_Q_BYTES)
    // Around words that match stand tags that no document can have.
    const tag = crypto.randomUUID()
    const marks = { highlight_start_tag: `<${tag}>`, highlight_end_tag: `</${tag}>` }
    const retrievals = await planRetrieval(env, access, assistant, { mode: 'text', top: query.limit })
    const searches = retrievals.map(({ search: { params, ...search } }) =>
      ofRequest({ ...search, params: { ...params, ...SNIPPETS, ...marks, q } }, record),
    )
    const replies = await runSearches(env, searches, request.signal)
    const [first] = replies
    // Where one of several found something, that is enough.
    if (first && 'error' in first && replies.every((reply) => 'error' in reply)) {
      throw new ApiError(first.code, first.error)
    }
    const found = replies.map((reply, at) =>
      'result' in reply
        ? hitsOf(reply.result).flatMap((hit) => shownHit(assistant, searches[at]!.collection, hit, tag))
        : [],
    )
    return { hits: byRank(found).slice(0, query.limit) }
  },

  /** Hands a conversation over to people, by the assistant's webhook. */
  async handOver(served) {
    const { env, access, path, body } = served
    const { name, handover } = await openAssistant(served, access, path.assistant)
    if (handover?.webhook === undefined) {
      const way = handover?.url === undefined ? 'it has no `handover`' : `open ${handover.url}`
      throw badRequest(`The assistant \`${name}\` takes no messages to people: ${way}.`)
    }
    const asker = await askerWith(served, 'conversations:get')
    const { id: conversationId } = await readable(env, asker, path.id)
    const said = { contact: body.contact.trim(), message: body.message.trim() }
    return { delivered: await requestPeople(env, { conversationId, assistant: name, ...said }) }
  },
} satisfies Partial<Handlers>

/** A hit as a page shows it; none if its document hides its id. */
function shownHit(
  assistant: AssistantConfig,
  collection: string,
  { document, highlights }: Hit,
  tag: string,
) {
  const [source] = sourcesOf(passagesOf([{ collection, document }]), assistant)
  if (!source) return []
  const { documentId: document_id, title, url } = source
  const matched = highlights.find(({ field }) => document[field] !== title)
  const lines = source.text.split('\n').filter((line) => line !== title)
  const text = matched?.snippet ?? matched?.snippets?.[0] ?? lines.join('\n').slice(0, LONGEST_SNIPPET)
  const snippet = text.split(`<${tag}>`).flatMap((piece, at) => {
    const [marked, after = ''] = at === 0 ? ['', piece] : piece.split(`</${tag}>`)
    return [...(marked ? [{ text: marked, mark: true }] : []), ...(after ? [{ text: after }] : [])]
  })
  return [{ collection, document_id, title, ...(url !== undefined && { url }), snippet }]
}
