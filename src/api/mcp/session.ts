import type { ChatParties } from '../http/chat-names'
import type { OpenCall } from '../http/route'

/** One HTTP request, and who sends it to which assistant. */
export interface Session extends ChatParties {
  call: OpenCall
  /** the body as it was sent */
  bodyText: string
}
