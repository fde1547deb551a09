/** What is lost with a collection: documents, and what needs it. */
import { useLoaded } from '../api'
import { loadChoices } from '../chat/choices'
import { many } from '../parts/format'
import type { Collection } from './wire'

/** Names in a sentence. */
const listed = (names: readonly string[]): string => new Intl.ListFormat('en').format(names)

/** Where conversations are kept. */
export const isHistory = ({ fields }: Pick<Collection, 'fields'>): boolean =>
  ['conversation_id', 'model_id', 'role', 'message'].every((name) =>
    fields.some((field) => field.name === name),
  )

export function Losses({ of }: { of: Collection }) {
  const { data: { models = [], assistants = [] } = {} } = useLoaded(`losses ${of.name}`, loadChoices)
  const writers = models.filter(({ history_collection: name }) => name === of.name).map(({ id }) => id)
  const silent = assistants.filter(({ model }) => writers.includes(model)).map(({ name }) => name)
  const searchers = assistants.filter(
    ({ collections = [], searches = [] }) =>
      collections.includes(of.name) || searches.some(({ collection }) => collection === of.name),
  )
  return (
    <>
      <p>
        {of.engine
          ? 'Parley forgets the name. The documents stay in the cluster.'
          : isHistory(of)
            ? `${many(of.num_documents, 'message')} of conversations are deleted for good.`
            : `${many(of.num_documents, 'document')} and their vectors are deleted for good. Answers that were written from them stay.`}
      </p>
      {writers.length > 0 && (
        <p class="bad">
          Conversations with {listed(writers)} are kept here. Without it {listed([...writers, ...silent])}{' '}
          cannot answer, until you make it again under “Models”.
        </p>
      )}
      {searchers.length > 0 && (
        <p class="bad">
          Searched by {listed(searchers.map(({ name }) => name))}, which will find nothing in it.
        </p>
      )}
    </>
  )
}
