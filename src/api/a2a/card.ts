/** The card by which other agents find an assistant. It needs a key, because it reveals which assistants exist. */
import { openParties } from '../http/chat-names'
import type { OpenCall } from '../http/route'

/** @throws ApiError 401, 404 */
export async function cardOf(call: OpenCall) {
  const { assistant } = await openParties(call)
  const { name, questions } = assistant
  const url = new URL(`/a2a/${encodeURIComponent(name)}`, call.request.url).href
  return {
    name,
    description: `Answers questions from the documents of ${name}, and names its sources.`,
    version: '0.1.0',
    supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    capabilities: { streaming: true, pushNotifications: false },
    securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: 'Bearer' } } },
    securityRequirements: [{ schemes: { bearer: { list: [] } } }],
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [
      {
        id: 'ask',
        name: 'Ask a question',
        description: 'Answers a question in plain language; follow-ups go on in the same context.',
        tags: ['search', 'question answering'],
        examples: questions,
      },
    ],
  }
}
