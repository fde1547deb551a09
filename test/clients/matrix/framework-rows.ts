/** Frameworks that reach a model by an address of their own: LangChain, and plain text of the AI SDK. */
import { useCompletion } from '@ai-sdk/react'
import { TextStreamChatTransport, type UIMessage } from 'ai'
import { expect } from 'vitest'
import { url } from '../harness'
import { assistant as assistantSays, chatOpenAi, user } from '../langchain'
import { stageHook } from '../react-stage'
import { bearer, NO_RESUME, type Row } from './row'

export const langChain: Row = {
  name: 'LangChain `ChatOpenAI` (`@langchain/openai`)',
  lacks: {
    Resume: NO_RESUME,
    Sources:
      'LangChain passes over the sources of chat completions; with `useResponsesApi` it has them, but then takes an answer that breaks off for a whole one',
  },
  rare: true,
  open(model) {
    const chat = chatOpenAi(model)
    const said: ReturnType<typeof user>[] = []
    return {
      async ask(question, { onText, signal } = {}) {
        let text = ''
        const asked = [...said, user(question)]
        for await (const piece of await (await chat).stream(asked, signal && { signal })) {
          if (piece.text !== '') onText?.(piece.text)
          text += piece.text
        }
        said.push(user(question), assistantSays(text))
        return { text, sources: [] }
      },
      whole: async (question) => (await (await chat).invoke(question)).text,
    }
  },
}

const NO_PLACE = 'text alone has no place for it'
const TEXT_LACKS = {
  Resume: 'text streams have no such request; the finished answer is in `GET /ui/ASSISTANT/CHAT/messages`',
  Sources: NO_PLACE,
}
const TEXT_NOTES = { Error: 'what breaks off an answer is the end of its text' }

/** Text has no other place for an error. */
function whole(text: string): string {
  const failure = /\n\n\[The answer broke off: (.+)\]$/.exec(text)?.[1]
  if (failure !== undefined) throw new Error(failure)
  return text
}

export const textTransport: Row = {
  name: 'AI SDK `TextStreamChatTransport`',
  lacks: TEXT_LACKS,
  notes: TEXT_NOTES,
  open(assistant) {
    const chatId = crypto.randomUUID()
    const transport = new TextStreamChatTransport<UIMessage>({
      api: `${url}/ui/${assistant}/text`,
      headers: bearer,
    })
    return {
      async ask(question, { onText, signal } = {}) {
        const stream = await transport.sendMessages({
          chatId,
          messages: [{ id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text: question }] }],
          trigger: 'submit-message',
          messageId: undefined,
          abortSignal: signal,
        })
        let text = ''
        for await (const chunk of stream) {
          if (chunk.type !== 'text-delta') continue
          onText?.(chunk.delta)
          text += chunk.delta
        }
        return { text: whole(text), sources: [] }
      },
    }
  },
}

const WAIT = { timeout: 25_000 }

export const completionHook: Row = {
  name: 'AI SDK `useCompletion`',
  lacks: TEXT_LACKS,
  notes: TEXT_NOTES,
  open(assistant) {
    const id = crypto.randomUUID()
    return {
      async ask(question, { onText, signal } = {}) {
        const hookId = crypto.randomUUID()
        const staged = await stageHook(() =>
          useCompletion({
            api: `${url}/ui/${assistant}/text`,
            headers: bearer,
            body: { id },
            streamProtocol: 'text',
            id: hookId,
          }),
        )
        await expect.poll(() => staged.current(), WAIT).toBeDefined()
        const hook = () => staged.current()!
        let shown = 0
        const watch = setInterval(() => {
          const now = hook().completion
          if (now.length > shown) onText?.(now.slice(shown))
          shown = Math.max(shown, now.length)
        }, 5)
        signal?.addEventListener('abort', () => hook().stop())
        try {
          const text = await hook().complete(question)
          if (text == null) {
            await expect.poll(() => hook().error ?? signal?.aborted, WAIT).toBeTruthy()
            throw hook().error ?? new Error('aborted')
          }
          onText?.(text.slice(shown))
          return { text: whole(text), sources: [] }
        } finally {
          clearInterval(watch)
          staged.leave()
        }
      },
    }
  },
}
