import { expect, it } from 'vitest'
import { Latest } from '../../src/auth/authenticate'

it('holds so many entries, those that were set last', () => {
  const latest = new Latest<number>(3)
  for (const n of [1, 2, 3]) latest.set(`k${n}`, n)
  latest.set('k1', 10)
  latest.set('k4', 4)
  expect(['k1', 'k2', 'k3', 'k4'].map((key) => latest.get(key))).toEqual([10, undefined, 3, 4])
  latest.delete('k3')
  latest.set('k5', 5)
  expect(['k1', 'k4', 'k5'].map((key) => latest.get(key))).toEqual([10, 4, 5])
  latest.clear()
  expect(latest.get('k5')).toBeUndefined()
})
