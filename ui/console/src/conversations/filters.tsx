/** What narrows the list of conversations. It stands in the address, so that a link shows the same list. */
import { useEffect, useState } from 'preact/hooks'
import { go, place, to } from '../address'
import { FilterBox, SearchBox, SelectField, useTyped } from '../parts/form'
import type { ListFilter } from './record'

const DAY_MS = 86_400_000

const NAMES = ['q', 'user', 'rating', 'only', 'days'] as const
type Filters = Record<(typeof NAMES)[number], string>

export function filters(): Filters {
  const { query } = place.value
  const of = (name: keyof Filters) => query.get(name) ?? ''
  return { q: of('q'), user: of('user'), rating: of('rating'), only: of('only'), days: of('days') }
}

export const isFiltered = (given: Filters): boolean => NAMES.some((name) => given[name] !== '')

/** @param now milliseconds */
export const filterOf = ({ q, user, rating, only, days }: Filters, now = Date.now()): ListFilter => ({
  q: q.trim(),
  user_id: user,
  rating,
  unanswered: only === 'unanswered' ? 'true' : '',
  failed: only === 'failed' ? 'true' : '',
  from: days === '' ? '' : String(now - Number(days) * DAY_MS),
})

const set = (next: Partial<Filters>) =>
  go(to(['conversations'], { ...filters(), ...next }), { replace: true })

/** What each narrows by: nothing, and the others in their order. */
const CHOICES = [
  { label: 'Rating', name: 'rating', any: 'Any rating', others: { down: 'Rated bad', up: 'Rated good' } },
  {
    label: 'Answers',
    name: 'only',
    any: 'Any answer',
    others: { unanswered: 'Cites nothing', failed: 'Failed' },
  },
  {
    label: 'Time',
    name: 'days',
    any: 'Any time',
    others: { 1: 'The last day', 7: 'The last 7 days', 30: 'The last 30 days' },
  },
] as const

export function FilterForm() {
  const given = filters()
  const { q, user } = given
  const [words, setWords] = useTyped(q, (typed) => set({ q: typed }))
  const [name, setName] = useState(user)
  useEffect(() => setName(user), [user])
  return (
    <search class="search-form line">
      <SearchBox label="Search questions and answers" value={words} change={setWords} most={200} />
      <FilterBox
        label="User"
        placeholder="User ID"
        value={name}
        change={setName}
        done={(user) => set({ user })}
      />
      {CHOICES.map(({ label, name, any, others }) => (
        <SelectField
          key={name}
          label={label}
          bare
          value={given[name]}
          options={[['', any], ...Object.entries(others)]}
          change={(value) => set({ [name]: value })}
        />
      ))}
    </search>
  )
}
