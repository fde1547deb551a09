/** Sums of usage: pure. */

export interface UsageRow {
  day: string
  key: string
  conversation_model_id: string
  turns: number
  input_tokens: number
  output_tokens: number
}

export type Measure = 'turns' | 'input_tokens' | 'output_tokens'
type Counts = Pick<UsageRow, Measure>

const DAY_MS = 86_400_000

export const total = (rows: readonly UsageRow[], measure: Measure): number =>
  rows.reduce((sum, row) => sum + row[measure], 0)

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
    if (before !== undefined) sums.set(row.day, before + row[measure])
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
    const sum = sums.get(row[name]) ?? { name: row[name], turns: 0, input_tokens: 0, output_tokens: 0 }
    sum.turns += row.turns
    sum.input_tokens += row.input_tokens
    sum.output_tokens += row.output_tokens
    sums.set(row[name], sum)
  }
  return [...sums.values()].sort((a, b) => b.turns - a.turns)
}

/** The next number of the form 1, 2 or 5 times a power of ten. */
export function ceiling(most: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, most)))
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= most) ?? most
}
