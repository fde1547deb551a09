/** Sums of usage: pure. */
import type { PricedRow } from '../../../../scripts/parley/prices.mjs'

/** A row of usage. `dollars` is absent where no price is known. */
export type UsageRow = Omit<PricedRow, 'model_name'>

export type Measure = 'turns' | 'input_tokens' | 'output_tokens' | 'dollars'
type Counts = Record<Measure, number>

const DAY_MS = 86_400_000

export const total = (rows: readonly UsageRow[], measure: Measure): number =>
  rows.reduce((sum, row) => sum + (row[measure] ?? 0), 0)

/** All days from one to another, both included. */
export function daysOf(first: string, last: string): string[] {
  const days: string[] = []
  for (let at = Date.parse(first); at <= Date.parse(last); at += DAY_MS) {
    days.push(new Date(at).toISOString().slice(0, 10))
  }
  return days
}

/** A number for each day, 0 where nothing was asked. */
export function byDay(
  rows: readonly UsageRow[],
  days: readonly string[],
  measure: Measure,
): { day: string; value: number }[] {
  const sums = new Map(days.map((day) => [day, 0]))
  for (const row of rows) {
    const before = sums.get(row.day)
    if (before !== undefined) sums.set(row.day, before + (row[measure] ?? 0))
  }
  return Array.from(sums, ([day, value]) => ({ day, value }))
}

/** Sums by a name, the largest first. */
export function byName(
  rows: readonly UsageRow[],
  name: 'key' | 'conversation_model_id',
): (Counts & { name: string })[] {
  const sums = new Map<string, Counts & { name: string }>()
  for (const row of rows) {
    const none = { name: row[name], turns: 0, input_tokens: 0, output_tokens: 0, dollars: 0 }
    const sum = sums.get(row[name]) ?? none
    sum.turns += row.turns
    sum.input_tokens += row.input_tokens
    sum.output_tokens += row.output_tokens
    sum.dollars += row.dollars ?? 0
    sums.set(row[name], sum)
  }
  return [...sums.values()].sort((a, b) => b.turns - a.turns)
}

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
        ...(turns === undefined
          ? []
          : [{ name, unit: 'turns' as const, used: total(own, 'turns'), most: turns }]),
        ...(tokens === undefined ? [] : [{ name, unit: 'tokens' as const, used: spent, most: tokens }]),
      ]
    })
    .sort((a, b) => b.used / b.most - a.used / a.most)
}

/** The next number of the form 1, 2 or 5 times a power of ten. */
export function ceiling(most: number): number {
  const power = 10 ** Math.floor(Math.log10(most > 0 ? most : 1))
  return [1, 2, 4, 6, 10].map((each) => each * power).find((each) => each >= most) ?? most
}

export interface Failure {
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
