/** The AI SDK's chat without a framework, in each version that is about: its own transport over real sockets. */
import * as ai7 from 'ai'
import * as ai5 from 'ai-5'
import { load } from './installed'

type Sdk = typeof ai7

export type Version = 'ai 5' | 'ai 6' | 'ai 7'

/** As what the versions have in common. The oldest, which takes no part that it does not know, and the newest run always. */
export const VERSIONS: Partial<Record<Version, Sdk>> = {
  'ai 5': ai5 as unknown as Sdk,
  ...(process.env.FULL && { 'ai 6': await load<Sdk>('ai-6', 'ai') }),
  'ai 7': ai7,
}

type Message = ai7.UIMessage

class State implements ai7.ChatState<Message> {
  status: ai7.ChatStatus = 'ready'
  error: Error | undefined = undefined
  messages: Message[]

  constructor(messages: Message[]) {
    this.messages = messages
  }

  pushMessage = (message: Message): void => {
    this.messages = [...this.messages, message]
  }
  popMessage = (): void => {
    this.messages = this.messages.slice(0, -1)
  }
  replaceMessage = (index: number, message: Message): void => {
    this.messages = this.messages.map((each, at) => (at === index ? this.snapshot(message) : each))
  }
  snapshot = <T>(value: T): T => structuredClone(value)
}

export interface ChatOptions {
  /** address that is asked */
  api: string
  key: string
  id?: string
  messages?: Message[]
  headers?: Record<string, string>
  /** whether only the last message is sent */
  trimmed?: boolean
  onData?: () => void
  fetch?: typeof fetch
  sendAutomaticallyWhen?: ai7.ChatInit<Message>['sendAutomaticallyWhen']
}

/** A chat of a version of the SDK. */
export function makeChat(version: Version, options: ChatOptions): ai7.AbstractChat<Message> {
  const { api, key, id, messages = [], headers, trimmed, fetch, sendAutomaticallyWhen } = options
  const { AbstractChat, DefaultChatTransport } = VERSIONS[version]!
  class Chat extends AbstractChat<Message> {}
  const transport = new DefaultChatTransport<Message>({
    api,
    headers: { authorization: `Bearer ${key}`, ...headers },
    ...(fetch && { fetch }),
    ...(trimmed && {
      prepareSendMessagesRequest: ({ id, messages, trigger, messageId }) => ({
        body: { id, message: messages.at(-1), trigger, messageId },
      }),
    }),
  })
  const own = { ...(id !== undefined && { id }), ...(sendAutomaticallyWhen && { sendAutomaticallyWhen }) }
  return new Chat({ ...own, transport, state: new State(messages) } as never)
}

/** The text of a message. */
export const textOf = (message: Message | undefined): string =>
  (message?.parts ?? []).map((part) => (part.type === 'text' ? part.text : '')).join('')
