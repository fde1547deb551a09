/** Question sets: the list, one with its runs, and what a run came to beside another. */
import { place } from '../address'
import { SetList } from './list'
import { RunPage } from './run'
import { SetPage } from './set'

export default function Sets() {
  const { rest, query } = place.value
  const [name, run] = rest
  if (name === undefined) return <SetList />
  if (run === undefined) return <SetPage key={name} name={name} />
  return <RunPage key={`${name}/${run}`} name={name} id={run} before={query.get('before') ?? ''} />
}
