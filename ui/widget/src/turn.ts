/** A turn as a page has it. */
import { type Source, sourcesCited } from './sources'
import type {
  AttachedFile,
  CalledTool,
  Citation,
  Feedback,
  Front,
  SentenceSupport,
  StoredTurn,
  TurnFault,
} from './wire'

/** `reading`: its sources are found, and nothing is written yet. */
export type TurnState = 'searching' | 'reading' | 'writing' | 'done' | 'stopped' | 'failed'

/** Whether a turn has not ended. */
export const isRunning = ({ state }: Pick<Turn, 'state'>): boolean =>
  state === 'searching' || state === 'reading' || state === 'writing'

export interface Turn {
  /** the server's; undefined until it is known */
  number?: number
  question: string
  /** what came with it; known to the tab that asked, until it is left */
  files?: AttachedFile[]
  answer: string
  state: TurnState
  /** whether the connection is being made again */
  reconnecting: boolean
  sources: Source[]
  citations: Citation[]
  followups: string[]
  /** its calls of tools */
  calls: CalledTool[]
  /** whether the documents do not answer the question */
  declined: boolean
  /** of each sentence that a language model wrote; empty: nobody knows */
  support: SentenceSupport[]
  /** what the visitor says of the answer */
  feedback?: Feedback | undefined
  /** the turn that it is to replace, with whatever came after that */
  replaces?: number
  /** turns that answered the same question, oldest first, this one among them; absent: this one alone */
  versions?: number[]
  /** whether the conversation has gone on from another version: this one is read, and nothing can be asked from it */
  isPast?: boolean
  /** the person who wrote the answer: there is no question */
  author?: string
  /** of a turn that failed */
  error?: TurnFault
}

/** What the reader says of a stored answer. */
export const ownOf = ({ feedback = [] }: StoredTurn): Feedback | undefined => {
  const own = feedback.find((each) => each.own)
  if (!own) return undefined
  const { rating, comment, reasons } = own
  return {
    ...(rating !== undefined && { rating }),
    ...(comment !== undefined && { comment }),
    ...(reasons !== undefined && { reasons }),
  }
}

/** A finished turn, as the server stores it. */
export const turnOf = (stored: StoredTurn, front: Partial<Front>): Turn => {
  const { turn: number, question, answer, citations, followups = [], support = [], versions, author } = stored
  const { calls = [] } = stored
  const declined = stored.declined === true
  const sources = sourcesCited(citations, front)
  const feedback = ownOf(stored)
  return {
    ...blank(),
    ...{ number, question, answer, citations, followups, calls, support, sources, feedback, declined },
    ...(versions && { versions }),
    ...(author !== undefined && { author }),
    state: 'done',
  }
}

export const blank = (): Turn => ({
  question: '',
  answer: '',
  state: 'searching',
  reconnecting: false,
  sources: [],
  citations: [],
  declined: false,
  followups: [],
  calls: [],
  support: [],
})
