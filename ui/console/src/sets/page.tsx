/** Question sets: the list, one with its runs, and what a run came to beside another. */
import { place, to } from '../address'
import { useLoaded } from '../api'
import { ago, many } from '../parts/format'
import { Item, ListPage } from '../parts/list'
import { RunPage } from './run'
import { SetDialog, SetPage } from './set'
import { deleteSet, listSets } from './store'

export default function Sets() {
  const { rest, query } = place.value
  const [name, run] = rest
  if (name === undefined) return <SetList />
  if (run === undefined) return <SetPage key={name} name={name} />
  return <RunPage key={`${name}/${run}`} name={name} id={run} before={query.get('before') ?? ''} />
}

function SetList() {
  const list = useLoaded('sets', listSets)
  return (
    <ListPage
      title="Question sets"
      lead="Questions whose answers you know. Run them before and after a change, and see what it did."
      list={list}
      empty={{
        icon: 'sets',
        title: 'No question sets yet',
        text: 'Write ten questions that your visitors ask, and the documents that answer them.',
      }}
      page="sets"
      fresh="New set"
      form={(close) => <SetDialog close={close} />}
      item={(set) => (
        <Item
          key={set.name}
          name={set.name}
          href={to(['sets', set.name])}
          about={
            <>
              {many(set.questions.length, 'question')} · {many(set.runs.length, 'run')}
              {set.runs[0] && ` · last run ${ago(set.runs[0].started_at)}`}
            </>
          }
          called={`the set ${set.name}`}
          remove={{
            action: 'Delete the set',
            says: <p>Its questions and runs are deleted. The conversations of its runs stay.</p>,
            run: () => deleteSet(set.name).then(list.reload),
          }}
        />
      )}
    />
  )
}
