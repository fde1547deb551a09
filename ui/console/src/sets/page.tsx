/** Question sets: the list, one with its runs, and what a run came to beside another. */
import { place, to } from '../address'
import { useLoaded } from '../api'
import { ago, many } from '../parts/format'
import { ListPage } from '../parts/list'
import { RunPage } from './run'
import { SetDialog, SetPage } from './set'
import { listSets, pathOf } from './store'

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
      kind="set"
      form={(close) => <SetDialog close={close} />}
      item={({ name, questions, runs }) => ({
        name,
        href: to(['sets', name]),
        about: [
          many(questions.length, 'question'),
          many(runs.length, 'run'),
          ...(runs[0] ? [`last run ${ago(runs[0].started_at)}`] : []),
        ].join(' · '),
        path: pathOf(name),
        says: 'Its questions and runs are deleted. The conversations of its runs stay.',
      })}
    />
  )
}
