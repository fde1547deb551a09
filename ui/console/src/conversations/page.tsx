/** Conversations: the list of them, what nothing answered, and one to read. */
import { place } from '../address'
import { NotFound } from '../parts/not-found'
import { ConversationPage } from './conversation'
import { ConversationList } from './list'
import { Unanswered } from './unanswered'

export default function Conversations() {
  const [name, id, more] = place.value.rest
  if (name === undefined) return <ConversationList />
  if (more !== undefined) return <NotFound />
  if (name === 'unanswered' && id === undefined) return <Unanswered />
  return <ConversationPage key={id ?? name} id={id ?? name} />
}
