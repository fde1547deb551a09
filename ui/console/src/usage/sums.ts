/** Sums of usage: pure. */
import type { PricedRow } from '../../../../scripts/parley/prices.mjs'

/** A row of usage. `dollars` is absent where no price is known. */
export type UsageRow = Omit<PricedRow, 'model_name'>

export type Measure = 'turns' | 'input_tokens' | 'output_tokens' | 'dollars'

const DAY_MS = 86_400_000

export const total = (rows: readonly UsageRow[], measure: Measure): number =>
  rows.reduce((sum, row) => sum + (row[measure] ?? 0), 0)

/** All days from one to another, both included. */
export const daysOf = (first: string, last: string): string[] =>
  Array.from({ length: (Date.parse(last) - Date.parse(first)) / DAY_MS + 1 }, (_, day) =>
    new Date(Date.parse(first) + day * DAY_MS).toISOString().slice(0, 10),
  )

/** A number for each day, 0 where nothing was asked. */
export function byDay(rows: readonly UsageRow[], days: readonly string[], measure: Measure) {
  const rowsOf = Map.groupBy(rows, (row) => row.day)
  return days.map((day) => ({ day, value: total(rowsOf.get(day) ?? [], measure) }))
}

/** A number for each key or model, those with the most turns first. */
export const byName = (
  rows: readonly UsageRow[],
  by: 'key' | 'conversation_model_id',
  measure: Measure,
): { name: string; value: number }[] =>
  [...Map.groupBy(rows, (row) => row[by])]
    .sort(([, a], [, b]) => total(b, 'turns') - total(a, 'turns'))
    .map(([name, own]) => ({ name, value: total(own, measure) }))

/** What may be asked in a day, and what of it was. */
export interface Budget {
  /** the key's or the model's name */
  name: string
  unit: 'turns' | 'tokens'
  used: number
  most: number
}

interface Limited {
  /** as usage names it */
  id: string
  name: string
  turns_per_day?: number | undefined
  tokens_per_day?: number | undefined
}

/** The budgets of keys or models with what of them was used on a day, the most used first. */
export function budgetsOf(
  limited: readonly Limited[],
  rows: readonly UsageRow[],
  by: 'key' | 'conversation_model_id',
  day: string,
): Budget[] {
  const today = rows.filter((row) => row.day === day)
  return limited
    .flatMap(({ id, name, turns_per_day: turns, tokens_per_day: tokens }): Budget[] => {
      const own = today.filter((row) => row[by] === id)
      const spent = total(own, 'input_tokens') + total(own, 'output_tokens')
      return [
        { name, unit: 'turns' as const, used: total(own, 'turns'), most: turns },
        { name, unit: 'tokens' as const, used: spent, most: tokens },
      ].flatMap(({ most, ...each }) => (most === undefined ? [] : { ...each, most }))
    })
    .sort((a, b) => b.used / b.most - a.used / a.most)
}

/** The next number of the form 1, 2 or 5 times a power of ten. */
export function ceiling(most: number): number {
  const power = 10 ** Math.floor(Math.log10(most > 0 ? most : 1))
  return [1, 2, 4, 6, 10].map((each) => each * power).find((each) => each >= most) ?? most
}

interface Failure {
  conversation: string
  /** in milliseconds since 1970 */
  created_at: number
  error: { message: string }
}

/** Failed turns by what they say: the most frequent first, then the latest. */
export function groupedFailures(failed: readonly Failure[]) {
  const groups = Map.groupBy(failed, ({ error }) => error.message)
  return [...groups]
    .map(([message, turns]) => ({
      message,
      count: turns.length,
      last: turns.reduce((best, each) => (each.created_at > best.created_at ? each : best)),
    }))
    .sort((a, b) => b.count - a.count || b.last.created_at - a.last.created_at)
}
