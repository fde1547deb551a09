/** Collections: the list of them, and one with its documents, its search and its schema. */
import { place } from '../address'
import { CollectionPage } from './collection'
import { CollectionList } from './list'

export default function Collections() {
  const [name, tab = 'search'] = place.value.rest
  return name === undefined ? <CollectionList /> : <CollectionPage key={name} name={name} tab={tab} />
}
