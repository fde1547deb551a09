/** GET /usage: what was spent, a row a day, key and model. Parley's own; Typesense keeps no such account. */
import { database } from '../../db/client'
import { dayOf, listUsage } from '../../db/usage'
import { ApiError } from '../../errors'
import { json } from './response'
import type { Call, Route } from './route'

const DAY_MS = 86_400_000
/** Days shown when the request names none. */
const DEFAULT_DAYS = 30
const MOST_ROWS = 1_000

async function list({ env, query }: Call): Promise<Response> {
  const now = Date.now()
  const to = day('to', query.to) ?? dayOf(now)
  const from = day('from', query.from) ?? dayOf(Date.parse(to) - (DEFAULT_DAYS - 1) * DAY_MS)
  const limit = count('limit', query.limit) ?? MOST_ROWS
  if (limit > MOST_ROWS) throw new ApiError(400, `Parameter \`limit\` can be at most ${MOST_ROWS}.`)
  const rows = await listUsage(database(env), {
    from,
    to,
    limit,
    offset: count('offset', query.offset) ?? 0,
    ...(query.key !== undefined && { owner: query.key }),
    ...(query.model !== undefined && { modelId: query.model }),
  })
  return json({
    from,
    to,
    usage: rows.map((row) => ({
      day: row.day,
      key: row.owner,
      conversation_model_id: row.modelId,
      turns: row.turns,
      input_tokens: row.inputTokens,
      output_tokens: row.outputTokens,
    })),
  })
}

function day(name: string, value: string | undefined): string | undefined {
  if (value === undefined) return undefined
  const time = /^\d{4}-\d\d-\d\d$/.test(value) ? Date.parse(value) : Number.NaN
  // A day that no month has is read as one of the next month.
  if (Number.isNaN(time) || dayOf(time) !== value) {
    throw new ApiError(400, `Parameter \`${name}\` must be a day in the form YYYY-MM-DD.`)
  }
  return value
}

function count(name: string, value: string | undefined): number | undefined {
  if (value === undefined) return undefined
  if (!/^\d{1,9}$/.test(value)) throw new ApiError(400, `Parameter \`${name}\` must be an unsigned integer.`)
  return Number(value)
}

export const usageRoutes: Route[] = [{ method: 'GET', path: '/usage', action: 'usage:list', handle: list }]
