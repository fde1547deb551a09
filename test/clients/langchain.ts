/** LangChain's `ChatOpenAI` with nothing but its own configuration. Its 75 MB are installed when it is asked for. */
import { KEY, url } from './harness'
import { load } from './installed'

interface Message {
  role: string
  content: string
}

export interface Said {
  text: string
  content: unknown
}

/** What the tests use of it. */
export interface ChatOpenAI {
  invoke(asked: string | (Message | Said)[]): Promise<Said>
  stream(asked: (Message | Said)[], options?: { signal: AbortSignal }): Promise<AsyncIterable<Said>>
  withStructuredOutput(schema: object, options: object): { invoke(asked: string): Promise<unknown> }
}

export const user = (content: string): Message => ({ role: 'user', content })
export const assistant = (content: string): Message => ({ role: 'assistant', content })

export async function chatOpenAi(model: string, useResponsesApi = false): Promise<ChatOpenAI> {
  const packaged = await load<{ ChatOpenAI: new (options: object) => ChatOpenAI }>(
    'langchain',
    '@langchain/openai',
  )
  return new packaged.ChatOpenAI({
    model,
    apiKey: KEY,
    configuration: { baseURL: `${url}/v1` },
    maxRetries: 0,
    useResponsesApi,
  })
}
