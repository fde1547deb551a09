/** Clients of search engines and of OpenAI's newer API. */
import OpenAI from 'openai'
import { client, KEY, request, url } from '../harness'
import { connect, ragPipeline } from '../opensearch-api'
import { NO_RESUME, type Options, partsOf, type Row, type Said } from './row'

/** What an assistant asks. Clients of search engines name it themselves. */
async function stageOf(assistant: string): Promise<{ model: string; collection: string }> {
  const { body } = await request('GET', `/assistants/${assistant}`)
  return { model: body.model ?? assistant, collection: body.collections?.[0] ?? assistant }
}

export const typesense: Row = {
  name: "Typesense's client (`typesense`)",
  lacks: { Resume: NO_RESUME },
  notes: {
    Error:
      'an answer that breaks off resolves, with `error` and `code` in the result and without `conversation`; the client rejects on nothing that a stream can hold',
  },
  open(assistant) {
    let id: string | undefined
    const search = async (q: string, { onText, signal }: Options = {}, stream = true) => {
      const { model, collection } = await stageOf(assistant)
      const parameters = {
        q,
        query_by: 'title,overview',
        conversation: true,
        conversation_model_id: model,
        ...(id !== undefined && { conversation_id: id }),
        ...(stream && {
          conversation_stream: true,
          streamConfig: {
            onChunk: (chunk: { message: string; conversation_id: string }) => {
              id = chunk.conversation_id
              if (chunk.message !== '') onText?.(chunk.message)
            },
          },
        }),
      }
      const found = (await client()
        .collections(collection)
        .documents()
        .search(parameters as never, { abortSignal: signal ?? null } as never)) as unknown as {
        error?: string
        hits: { document: { title: string } }[]
        conversation: { answer: string; conversation_id: string }
      }
      if (found.error !== undefined) throw new Error(found.error)
      id = found.conversation.conversation_id
      return found
    }
    return {
      async ask(question, options) {
        const { conversation, hits } = await search(question, options)
        return { text: conversation.answer, sources: hits.map(({ document }) => document.title) }
      },
      whole: async (question) => (await search(question, {}, false)).conversation.answer,
    }
  },
}

export const openSearch: Row = {
  name: "OpenSearch's client (`@opensearch-project/opensearch`)",
  lacks: { Resume: NO_RESUME },
  open(assistant) {
    let id: string | undefined
    const ready = (async () => {
      const { model, collection } = await stageOf(assistant)
      const pipeline = await ragPipeline(model, { context_field_list: ['title', 'overview'] })
      const { body } = await connect().transport.request({
        method: 'POST',
        path: '/_plugins/_ml/memory',
        body: {},
      })
      id = (body as { memory_id: string }).memory_id
      return `/${collection}/_search?search_pipeline=${pipeline}`
    })()
    // Whoever asks is told.
    ready.catch(() => {})
    const bodyOf = (question: string, stream: boolean) => ({
      query: { match: { overview: question } },
      ext: { generative_qa_parameters: { llm_question: question, memory_id: id, rewrite_question: true } },
      ...(stream && { stream }),
    })
    return {
      async ask(question, { onText, signal } = {}) {
        const sent = connect().transport.request(
          { method: 'POST', path: await ready, body: bodyOf(question, true) },
          { asStream: true },
        )
        signal?.addEventListener('abort', () => sent.abort())
        const { body, statusCode } = (await sent) as unknown as {
          body: AsyncIterable<Uint8Array> & { destroy(): void }
          statusCode: number
        }
        // The client throws no error of a stream by itself.
        if (statusCode !== 200) throw new Error(`HTTP ${statusCode}`)
        signal?.addEventListener('abort', () => body.destroy())
        return readSearch(body, onText)
      },
      async whole(question) {
        const path = await ready
        const { body } = await connect().transport.request({
          method: 'POST',
          path,
          body: bodyOf(question, false),
        })
        return (body as { ext: { retrieval_augmented_generation: { answer: string } } }).ext
          .retrieval_augmented_generation.answer
      },
    }
  },
}

/** A search whose answer is streamed: its hits, pieces of the answer, and the end. */
async function readSearch(body: AsyncIterable<Uint8Array>, onText?: (piece: string) => void): Promise<Said> {
  let text = ''
  let sources: string[] = []
  for await (const part of partsOf(body, '\n\n')) {
    const lines = part.split('\n')
    const type = lines.find((line) => line.startsWith('event: '))?.slice('event: '.length)
    const data = lines.find((line) => line.startsWith('data: '))?.slice('data: '.length)
    if (data === undefined) continue
    const event = JSON.parse(data)
    if (type === 'error') throw new Error(JSON.stringify(event))
    if (type === 'hits') {
      sources = event.hits.hits.map(({ _source }: { _source: { title: string } }) => _source.title)
    }
    if (type !== 'answer') continue
    onText?.(event.text)
    text += event.text
  }
  return { text, sources }
}

export const responses: Row = {
  name: 'OpenAI SDK, responses',
  citesOnly: true,
  open(model) {
    const api = new OpenAI({ baseURL: `${url}/v1`, apiKey: KEY, maxRetries: 0 }).responses
    const conversation = crypto.randomUUID()
    let id = ''
    const read = async (
      stream: AsyncIterable<OpenAI.Responses.ResponseStreamEvent>,
      onText?: Options['onText'],
    ) => {
      let text = ''
      const sources: string[] = []
      for await (const event of stream) {
        if (event.type === 'response.created') id = event.response.id
        if (event.type === 'response.failed') throw new Error(event.response.error?.message)
        if (event.type === 'response.output_text.delta') {
          onText?.(event.delta)
          text += event.delta
        }
        if (event.type === 'response.output_text.annotation.added') {
          sources.push((event.annotation as { title: string }).title)
        }
      }
      return { text, sources }
    }
    return {
      async ask(input, { onText, signal } = {}) {
        const said = await read(
          await api.create({ model, input, conversation, stream: true }, { signal }),
          onText,
        )
        // The SDK ends an aborted stream without an error.
        if (signal?.aborted) throw new Error('aborted')
        return said
      },
      whole: async (input) => (await api.create({ model, input, conversation })).output_text,
      resume: async () => (await read(await api.retrieve(id, { stream: true }))).text,
    }
  },
}
