/** Conversations: the list of them, what nothing answered, and one to read. */
import { place } from '../address'
import { ConversationPage } from './conversation'
import { ConversationList } from './list'
import { Unanswered } from './unanswered'

export default function Conversations() {
  const [name, id] = place.value.rest
  if (name === undefined) return <ConversationList />
  if (name === 'unanswered') return <Unanswered />
  return <ConversationPage key={id ?? name} id={id ?? name} />
}
