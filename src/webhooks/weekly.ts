/**
 * The gaps of each week, for webhooks: a walk over the week's turns, a step each minute. Where it stands is a row of D1's `resources`.
 */
import * as v from 'valibot'
import { gapWalker } from '../conversation/conversation-object'
import { walk } from '../conversation/gaps'
import { announce } from '../db/deliveries'
import { findResource, insertResource, replaceResource } from '../db/resources'
import { unwrap } from '../errors'
import { once } from '../lib/once'
import { readStored } from '../lib/stored-json'

const WEEK_MS = 7 * 86_400_000
/** Gaps that a message names. */
const MOST_TOLD = 50

const KIND = 'gaps'
const WEEKLY = 'weekly'

const Week = once(() =>
  v.object({
    ...walk(),
    /** unix milliseconds */
    next_at: v.number(),
  }),
)

/** Has gaps be told each week from now on: those of the latest turns first. Does nothing where they are already. */
export async function tellWeekly(env: Cloudflare.Env): Promise<void> {
  const body = JSON.stringify({ turns: 0, gaps: [], next_at: Date.now() })
  await insertResource(env.DB, { kind: KIND, id: WEEKLY, body })
}

/** Goes on with the week's walk, if it is due, and tells the webhooks once it has ended. */
export async function gatherWeek(env: Cloudflare.Env): Promise<void> {
  const row = await findResource(env.DB, KIND, WEEKLY)
  const week = row && readStored(Week(), row.body)
  const now = Date.now()
  if (!week || week.next_at > now) return
  const { next_at: due, ...from } = week
  const { done, ...walked } = unwrap(await gapWalker(env).gaps(from, {}))
  const { after, turns, since, gaps } = walked
  // Told before it is noted: whoever dies in between tells it twice, and not never.
  if (done)
    await announce(env.DB, {
      event: 'gaps.weekly',
      data: { turns, ...(since !== undefined && { since }), gaps: gaps.slice(0, MOST_TOLD) },
    })
  const next = done
    ? { after, turns: 0, gaps: [], next_at: Math.max(due + WEEK_MS, now) }
    : { ...walked, next_at: due }
  await replaceResource(env.DB, row, { kind: KIND, id: WEEKLY, body: JSON.stringify(next) })
}
