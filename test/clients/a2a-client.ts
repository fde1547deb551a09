/** The official SDK's client of A2A, connected to an assistant. */
import { SendMessageRequest, type Task } from '@a2a-js/sdk'
import {
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
} from '@a2a-js/sdk/client'
import { KEY, url } from './harness'

/** Reads the assistant's card. @param headers besides the key's */
export function connectA2a(assistant: string, key = KEY, headers: Record<string, string> = {}) {
  const fetchImpl: typeof fetch = (input, init) =>
    fetch(input, {
      ...init,
      headers: {
        ...Object.fromEntries(new Headers(init?.headers)),
        authorization: `Bearer ${key}`,
        ...headers,
      },
    })
  const factory = new ClientFactory(
    ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
      transports: [new JsonRpcTransportFactory({ fetchImpl })],
      cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
    }),
  )
  return factory.createFromUrl(`${url}/a2a/${assistant}/`)
}

/** @param place `contextId`, `taskId` */
export const messageOf = (text: string, place: { contextId?: string; taskId?: string } = {}) =>
  SendMessageRequest.fromJSON({
    message: { messageId: crypto.randomUUID(), ...place, role: 'ROLE_USER', parts: [{ text }] },
  })

type Parts = { content?: { $case: string; value: unknown } | undefined }[]

export const textIn = (parts: Parts = []): string =>
  parts.map(({ content }) => (content?.$case === 'text' ? String(content.value) : '')).join('')

export const answerIn = ({ artifacts = [] }: Pick<Task, 'artifacts'>): string =>
  artifacts.map(({ parts }) => textIn(parts)).join('')
