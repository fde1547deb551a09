/** Usage: one row for each day, key and model. */
import { dayOf, listUsage } from '../../db/usage'
import { json } from '../http/deliver'
import type { operations } from './operations'
import type { Served } from './route'
import { MOST_USAGE } from './schemas'

const DAY_MS = 86_400_000
/** Days to show by default. */
const DEFAULT_DAYS = 30

export async function usage({ env, query }: Served<typeof operations.listUsage>): Promise<Response> {
  const to = query.to ?? dayOf(Date.now())
  const from = query.from ?? dayOf(Date.parse(to) - (DEFAULT_DAYS - 1) * DAY_MS)
  const rows = await listUsage(env.DB, {
    from,
    to,
    limit: query.limit ?? MOST_USAGE,
    offset: query.offset ?? 0,
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
