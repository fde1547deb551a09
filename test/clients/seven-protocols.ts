/** One conversation through each of Parley's seven protocols, with the client that people use for it. */
import { AIChatProtocolClient } from '@microsoft/ai-chat-protocol'
import OpenAI from 'openai'
import { ask, client, createAssistant, createModel, createShows, KEY, request, unique, url } from './harness'
import { makeChat, textOf } from './headless-chat'
import type { Llm } from './llm'
import { call, connect, ragPipeline } from './opensearch-api'

/** What was said: a question and its answer. */
export type Exchange = [question: string, answer: string]

/** A conversation as a client of one protocol has it open. */
export interface Thread {
  /** known once something was asked */
  id: string
  /** @returns the answer */
  ask(question: string): Promise<string>
}

export interface Protocol {
  name: string
  /** @param id of a conversation that exists, whatever protocol began it; absent: the first question begins one */
  open(id?: string): Thread
  /** Absent: the protocol has no request for what was said before. */
  read?(id: string): Promise<Exchange[]>
}

/** The history collection of OpenSearch's memories, which the model of this file shares. */
const HISTORY = 'opensearch_memory'

/** Pairs messages that alternate. */
const paired = (messages: string[]): Exchange[] =>
  messages.flatMap((message, at) => (at % 2 === 0 ? [[message, messages[at + 1] ?? ''] as Exchange] : []))

/** @returns all seven, over one collection, one model and one assistant */
export async function sevenProtocols(llm: Llm): Promise<Protocol[]> {
  // The history collection of memories is made with the first one.
  await call('POST', '/_plugins/_ml/memory', {})
  const shows = await createShows()
  const model = await createModel({
    model_name: 'openai/gpt-4o-mini',
    openai_url: llm.url,
    history_collection: HISTORY,
  })
  const assistant = await createAssistant({ model, collections: [shows] })
  const pipeline = await ragPipeline(model, { context_field_list: ['overview'] })
  return [
    typesense(shows, model),
    parley(shows, model),
    aiChat(assistant),
    uiStream(assistant),
    chatCompletions(assistant),
    responses(assistant),
    openSearch(shows, pipeline),
  ]
}

export const typesense = (collection: string, model: string, history = HISTORY): Protocol => ({
  name: 'Typesense',
  open: (id = '') => ({
    id,
    async ask(q) {
      const { conversation } = await client()
        .collections(collection)
        .documents()
        .search({
          q,
          query_by: 'overview',
          conversation: true,
          conversation_model_id: model,
          ...(this.id !== '' && { conversation_id: this.id }),
        })
      this.id = conversation!.conversation_id
      return conversation!.answer
    },
  }),
  async read(id) {
    // An export has documents in the order in which they were stored. A search puts those of one second latest first.
    const lines = await client()
      .collections(history)
      .documents()
      .export({ filter_by: `conversation_id:=\`${id}\`` })
    return paired(lines.split('\n').map((line) => (JSON.parse(line) as { message: string }).message))
  },
})

const parley = (collection: string, model: string): Protocol => ({
  name: "Parley's own routes",
  open: (id = '') => ({
    id,
    async ask(question) {
      const { status, text, body } = await ask(model, collection, {
        question,
        ...(this.id !== '' && { conversation_id: this.id }),
      })
      if (status !== 200) throw new Error(text)
      this.id = body.conversation_id
      return body.answer
    },
  }),
  async read(id) {
    const { body } = await request('GET', `/conversations/${id}`)
    return body.turns.map(({ question, answer }: { question: string; answer: string }) => [question, answer])
  },
})

const aiChat = (assistant: string): Protocol => ({
  name: 'AI Chat Protocol',
  open: (id = '') => ({
    id,
    async ask(content) {
      const chat = new AIChatProtocolClient(
        `${url}/a/${assistant}/chat`,
        { key: KEY },
        { credentials: { apiKeyHeaderName: 'x-typesense-api-key' }, retryOptions: { maxRetries: 0 } },
      )
      const session = this.id === '' ? {} : { sessionState: this.id }
      const { message, sessionState } = await chat.getCompletion([{ role: 'user', content }], session)
      this.id = String(sessionState)
      return message.content
    },
  }),
})

const uiStream = (assistant: string): Protocol => ({
  name: 'UI message stream',
  open(id = '') {
    const chat = makeChat('ai 7', {
      api: `${url}/ui/${assistant}`,
      key: KEY,
      id: id === '' ? unique('a chat') : id,
    })
    return {
      id,
      async ask(text) {
        await chat.sendMessage({ text })
        if (chat.error) throw chat.error
        this.id = (chat.lastMessage!.metadata as { conversation_id: string }).conversation_id
        return textOf(chat.lastMessage)
      },
    }
  },
})

const openai = () => new OpenAI({ baseURL: `${url}/v1`, apiKey: KEY, maxRetries: 0 })

const chatCompletions = (model: string): Protocol => ({
  name: 'OpenAI chat completions',
  open: (id = '') => ({
    id,
    async ask(content) {
      const name = this.id === '' ? {} : { metadata: { conversation_id: this.id } }
      const { data, response } = await openai()
        .chat.completions.create({ model, messages: [{ role: 'user', content }], ...name })
        .withResponse()
      this.id = response.headers.get('x-parley-conversation-id')!
      return data.choices[0]?.message.content ?? ''
    },
  }),
})

const responses = (model: string): Protocol => ({
  name: 'OpenAI responses',
  open: (id = '') => ({
    id,
    async ask(input) {
      const named = this.id === '' ? {} : { conversation: this.id }
      const response = await openai().responses.create({ model, input, ...named })
      this.id = response.conversation!.id
      return response.output_text
    },
  }),
})

/** @param pipeline that asks the model */
export const openSearch = (index: string, pipeline: string): Protocol => ({
  name: 'OpenSearch',
  open: (id = '') => ({
    id,
    async ask(llm_question) {
      const { ml } = connect()
      if (this.id === '')
        this.id = ((await ml.createMemory({ body: {} })).body as { memory_id: string }).memory_id
      const { body } = await connect().search({
        index,
        search_pipeline: pipeline,
        body: {
          query: { match: { overview: llm_question } },
          ext: { generative_qa_parameters: { llm_question, memory_id: this.id } },
        } as never,
      })
      const { ext } = body as unknown as { ext: { retrieval_augmented_generation: { answer: string } } }
      return ext.retrieval_augmented_generation.answer
    },
  }),
  async read(id) {
    const { body } = await connect().ml.getAllMessages({ memory_id: id, max_results: 100 })
    const { messages } = body as { messages: { input: string; response: string }[] }
    return messages.map(({ input, response }) => [input, response])
  },
})
