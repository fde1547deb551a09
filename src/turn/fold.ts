/** What the events of a turn add up to, for every protocol that answers with one object: pure. */
import type {
  Citation,
  CutDocument,
  HistoryMessage,
  SearchReply,
  SourceReference,
  Timings,
  TurnEvent,
  Usage,
} from './events'

/** A turn so far. `answer` and `finishReason` are known once it is done. */
export interface FoldedTurn {
  conversationId: string
  turn: number
  question: string
  /** what was searched, where it is not the question as it was asked */
  standalone?: string
  replies: SearchReply[]
  /** what went into the prompt, best first */
  sources: SourceReference[]
  /** what did not fit into the prompt whole; absent: nothing */
  cut?: CutDocument[]
  citations: Citation[]
  /** absent until some were suggested */
  followups?: string[]
  usage?: Usage
  timings?: Timings
  answer: string
  finishReason?: string
  history?: HistoryMessage[]
}

export const emptyTurn = (): FoldedTurn => ({
  conversationId: '',
  turn: 0,
  question: '',
  replies: [],
  sources: [],
  citations: [],
  answer: '',
})

/** Adds an event to a turn. Deltas add nothing: `done` carries the whole answer. */
export function fold(folded: FoldedTurn, event: TurnEvent): void {
  folded.conversationId = event.conversation_id
  folded.turn = event.turn
  switch (event.type) {
    case 'question':
      folded.question = event.question
      if (event.standalone !== undefined) folded.standalone = event.standalone
      break
    case 'retrieval':
      folded.replies = event.replies
      folded.sources = event.sources
      if (event.cut) folded.cut = event.cut
      break
    case 'citation': {
      const { document_id, collection, start, end, quote } = event
      folded.citations.push({
        document_id,
        collection,
        start,
        end,
        ...(quote === undefined ? {} : { quote }),
      })
      break
    }
    case 'followups':
      folded.followups = event.questions
      break
    case 'usage':
      folded.usage = event.usage
      folded.timings = event.timings
      break
    case 'done':
      folded.answer = event.answer
      folded.finishReason = event.finish_reason
      if (event.history) folded.history = event.history
      break
  }
}

/** A whole turn at once. @param events from its first to its `done` */
export function foldTurn(events: Iterable<TurnEvent>): FoldedTurn {
  const folded = emptyTurn()
  for (const event of events) fold(folded, event)
  return folded
}

/** Whether no search succeeded: such a turn has results, but no answer. */
export const allFailed = ({ replies }: FoldedTurn): boolean =>
  replies.length > 0 && replies.every((reply) => 'error' in reply)
