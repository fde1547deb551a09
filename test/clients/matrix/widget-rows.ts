/** Clients whose bytes are written and read here: widgets that need a browser, and Parley's own routes. */
import { request, url } from '../harness'
import { bearer, type Options, partsOf, type Row, type Said } from './row'

/** A request as a widget in a page sends it, and its pieces as they come. */
async function post(path: string, body: unknown, headers: Record<string, string>, options: Options = {}) {
  const { signal } = options
  const response = await fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...bearer, ...headers },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  })
  if (!response.ok) throw new Error(await response.text())
  return response
}

const WIDGET_RESUME =
  'the widget has no such request; it loads the finished answer when the page is opened again'

export const deepChat: Row = {
  name: 'deep-chat, its own format',
  lacks: { Resume: WIDGET_RESUME },
  open(assistant) {
    const conversation_id = crypto.randomUUID()
    const body = (text: string) => ({ messages: [{ role: 'user', text }], conversation_id })
    return {
      async ask(question, options = {}) {
        const accept = { accept: 'text/event-stream' }
        const response = await post(`/deep-chat/${assistant}`, body(question), accept, options)
        let text = ''
        let sources: string[] = []
        for await (const part of partsOf(response.body, '\n\n')) {
          if (!part.startsWith('data: {')) continue
          const frame = JSON.parse(part.slice('data: '.length))
          if (frame.error) throw new Error(frame.error)
          if (frame.text) options.onText?.(frame.text)
          text += frame.text ?? ''
          sources = frame.sources?.map(({ title }: { title: string }) => title) ?? sources
        }
        return { text, sources }
      },
      whole: async (question) =>
        ((await (await post(`/deep-chat/${assistant}`, body(question), {})).json()) as { text: string }).text,
    }
  },
}

export const n8n: Row = {
  name: "n8n's chat widget",
  lacks: {
    Resume: WIDGET_RESUME,
    Sources: 'the format has text alone; documents that have an address are linked in it',
  },
  open(assistant) {
    const sessionId = crypto.randomUUID()
    const body = (chatInput: string) => ({ action: 'sendMessage', sessionId, chatInput })
    return {
      async ask(question, options = {}) {
        const accept = { accept: 'text/plain' }
        const response = await post(`/n8n/${assistant}`, body(question), accept, options)
        let text = ''
        for await (const line of partsOf(response.body, '\n')) {
          if (line === '') continue
          const { type, content = '' } = JSON.parse(line)
          if (type === 'error') throw new Error(content)
          if (content !== '') options.onText?.(content)
          text += content
        }
        return { text, sources: [] }
      },
      whole: async (question) =>
        ((await (await post(`/n8n/${assistant}`, body(question), {})).json()) as { output: string }).output,
    }
  },
}

/** The key for pages that the snippet has in its address. Its tests make one. */
export const snippet = (pageKey: () => string): Row => ({
  name: 'Cloudflare AI Search snippet',
  lacks: {
    Resume: 'the snippet names no conversation',
    Sources: 'the chat passes over the documents that it is sent; the search of the same package shows them',
  },
  open(assistant) {
    const said: { role: string; content: string }[] = []
    const path = () => `/ai-search/${encodeURIComponent(pageKey())}/${assistant}/chat/completions`
    return {
      async ask(question, options = {}) {
        said.push({ role: 'user', content: question })
        const body = { messages: said, stream: true }
        const response = await post(path(), body, { accept: 'text/event-stream', authorization: '' }, options)
        let text = ''
        for await (const part of partsOf(response.body, '\n\n')) {
          const data = part.slice(part.indexOf('data: ') + 'data: '.length)
          // As the snippet does, this passes over `event: chunks`.
          if (part.startsWith('event: ') || !data.startsWith('{')) continue
          const piece = JSON.parse(data).choices[0].delta.content
          options.onText?.(piece)
          text += piece
        }
        // It takes any end for a success. What failed is the end of the text.
        const failure = /\n\n\*\*(.+)\*\*$/.exec(text)?.[1]
        if (failure !== undefined) throw new Error(failure)
        said.push({ role: 'assistant', content: text })
        return { text, sources: [] }
      },
    }
  },
})

export const own: Row = {
  name: "Parley's own routes",
  open(assistant) {
    let id: string | undefined
    const path = `/a/${assistant}/conversations`
    const body = (question: string) => ({ question, ...(id !== undefined && { conversation_id: id }) })
    const read = async (response: Response, onText?: (piece: string) => void): Promise<Said> => {
      let text = ''
      let sources: string[] = []
      for await (const part of partsOf(response.body, '\n\n')) {
        // Not by regular expressions: their lines also end at U+2028, which an answer may hold.
        const lines = part.split('\n')
        const type = lines.find((line) => line.startsWith('event: '))?.slice('event: '.length)
        const data = lines.find((line) => line.startsWith('data: '))?.slice('data: '.length)
        if (data === undefined) continue
        const event = JSON.parse(data)
        if (type === 'error') throw new Error(event.message)
        if (type === 'delta') {
          onText?.(event.text)
          text += event.text
        }
        if (type === 'retrieval') {
          sources = event.sources.map(({ document_id }: { document_id: string }) => document_id)
        }
        if (type === 'done') break
      }
      return { text, sources }
    }
    return {
      async ask(question, options = {}) {
        const response = await post(path, { ...body(question), stream: true }, {}, options)
        id = response.headers.get('x-parley-conversation-id') ?? id
        return read(response, options.onText)
      },
      async whole(question) {
        const { body: answer, status, text } = await request('POST', path, body(question))
        if (status !== 200) throw new Error(text)
        id = answer.conversation_id
        return answer.answer
      },
      resume: async () =>
        (await read(await fetch(`${url}/conversations/${id}/events`, { headers: bearer }))).text,
    }
  },
}
