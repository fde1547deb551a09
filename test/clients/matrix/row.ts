/** A client as the table of docs/clients.md has it. */
import { KEY } from '../harness'

export interface Options {
  /** gets each piece of a streamed answer */
  onText?: (piece: string) => void
  signal?: AbortSignal
}

export interface Said {
  text: string
  /** titles or ids of what the answer is made from */
  sources: string[]
}

/** One conversation as a client has it open. */
export interface Chat {
  /** Asks and streams the answer, if the client can. Rejects if the client shows an error. */
  ask(question: string, options?: Options): Promise<Said>
  /** Asks for a whole answer. Absent: `ask` does that. */
  whole?(question: string): Promise<string>
  /** Reads the answer that is being written, from its beginning. */
  resume?(): Promise<string>
}

export const COLUMNS = ['Ask', 'Stream', 'Follow-up', 'Error', 'Abort', 'Resume', 'Sources'] as const
export type Column = (typeof COLUMNS)[number]

export interface Row {
  name: string
  /** Why a cell cannot be. */
  lacks?: Partial<Record<Column, string>>
  /** What to know of a cell that holds. */
  notes?: Partial<Record<Column, string>>
  /** true if its sources are the places that an answer cites, with an address */
  citesOnly?: true
  /** true: it is installed, and asked, with FULL alone */
  rare?: true
  open(assistant: string): Chat
}

export const NO_RESUME =
  'the API has no request for a running answer; `GET /conversations/CONVERSATION/events` follows it'

/** Parts of a stream between separators, as they come. */
export async function* partsOf(
  body: AsyncIterable<Uint8Array> | null,
  separator: string,
): AsyncGenerator<string> {
  let rest = ''
  const decoder = new TextDecoder()
  for await (const bytes of body ?? []) {
    const parts = (rest + decoder.decode(bytes, { stream: true })).split(separator)
    rest = parts.pop() ?? ''
    yield* parts
  }
}

export const bearer = { authorization: `Bearer ${KEY}` }
