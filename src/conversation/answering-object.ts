import { CountingObject } from '../durable/counting-object'
import { attempt, type Outcome } from '../errors'
import type { Single } from '../turn/request'
import { answerOnce } from './once'
import type { Reads } from './reader'

/** An object that answers questions outside any conversation. It stores nothing of them. */
export class AnsweringObject extends CountingObject {
  once(single: Single, conversationId?: string): Promise<Outcome<Reads>> {
    return attempt(() => answerOnce(this.env, single, conversationId))
  }
}
