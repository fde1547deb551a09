/**
 * Gaps: questions that the documents did not answer well, those that mean the same in one group. A walk over the turns of D1 in the
 * order of their rows finds them, some at a time, in an object of its own: comparing takes the CPU of an object.
 */
import * as v from 'valibot'
import { type AskedTurn, askedTurns, latestTurnRow } from '../db/turns'
import { TESTER } from '../durable/front-door'
import { once } from '../lib/once'
import { readStored } from '../lib/stored-json'
import { pause } from '../lib/waiting'
import { staticEmbedder } from '../models/static-embedder'
import { dot } from '../search/vectors/packed-vectors'
import { clip } from './outbox'
import { passageShape, type Scope, stringsShape } from './stored'

/** Turns of one walk, and those that are read at once. */
const TURNS_A_WALK = 2_000
const TURNS_AT_ONCE = 500
/** Gaps that a walk keeps: those asked most often, then the latest. */
const MOST_GAPS = 200
/** Wordings and documents of a gap, and UTF-16 units of a text. */
const MOST_EXAMPLES = 5
const MOST_NEAREST = 3
const MOST_REASONS = 20
const LONGEST_TEXT = 500

/**
 * From which cosine on two questions are taken to mean the same. With Parley's own model, 47 questions in 20 meanings then come to 25
 * groups, two of which mix meanings: short questions about the same name. At 0.65 none does, and there are 38 groups. What is said to
 * be answered has to be the same question.
 */
const ALIKE = 0.55
const SAME = 0.65

const Place = once(() =>
  v.object({
    conversation_id: v.string(),
    turn: v.number(),
    /** milliseconds since 1970 */
    created_at: v.number(),
  }),
)

const Gap = once(() =>
  v.object({
    /** as it was searched: a follow-up says little by itself */
    question: v.string(),
    times: v.number(),
    /** other wordings */
    examples: v.array(v.string()),
    /** how often: `declined`, `cites_nothing`, `warned`, `rated_down`, `asked_again` */
    faults: v.record(v.string(), v.number()),
    /** what people said against the answers, and how often */
    reasons: v.record(v.string(), v.number()),
    last_asked: Place(),
    /** documents that came nearest when it was asked, best first */
    nearest: v.array(
      v.object({
        collection: v.string(),
        document_id: v.string(),
        title: v.exactOptional(v.string()),
        url: v.exactOptional(v.string()),
      }),
    ),
    /** a later turn that answered the same question */
    answered_since: v.exactOptional(Place()),
  }),
)
export type Gap = v.InferOutput<ReturnType<typeof Gap>>

/** How far a walk is. */
export const walk = once(() => ({
  /** the row from which it goes on; absent: so many turns before the last one */
  after: v.exactOptional(v.number()),
  /** turns that were looked at, and when the first was asked, in milliseconds since 1970 */
  turns: v.number(),
  since: v.exactOptional(v.number()),
  /** the most asked first */
  gaps: v.array(Gap()),
}))
const Walk = once(() => v.object(walk()))
export type Walk = v.InferOutput<ReturnType<typeof Walk>>

/** What a step of a walk gives and takes. `done`: no turn is left. */
export type Walked = Walk & { done: boolean }

/** Goes on with a walk. @param whose conversations it looks at */
export async function walkTurns(env: Cloudflare.Env, from: Walk, whose: Scope): Promise<Walked> {
  const { DB: db } = env
  const embedder = staticEmbedder(env)
  const last = await latestTurnRow(db)
  const known = await embedder.embed(
    from.gaps.map(({ question }) => question),
    'query',
  )
  let kept = from.gaps.map((gap, at) => ({ gap, vector: known[at]! }))
  const walked: Walk = { ...from, after: Math.min(last, from.after ?? last - TURNS_A_WALK) }
  let done = false
  for (let read = 0; read < TURNS_A_WALK && !done; read += TURNS_AT_ONCE) {
    const page = { after: walked.after!, limit: TURNS_AT_ONCE, without: TESTER, now: Date.now() }
    const rows = await askedTurns(db, whose, page)
    const vectors = await embedder.embed(
      rows.map(({ question }) => question),
      'query',
    )
    for (const [at, row] of rows.entries()) take(kept, row, vectors[at]!)
    kept = kept.sort((a, b) => order(a.gap, b.gap)).slice(0, MOST_GAPS)
    walked.turns += rows.length
    walked.since ??= rows[0]?.createdAt
    walked.after = rows.at(-1)?.number ?? walked.after!
    done = rows.length < TURNS_AT_ONCE
    await pause()
  }
  return { ...walked, gaps: kept.map(({ gap }) => gap), done }
}

interface Kept {
  gap: Gap
  vector: Float32Array
}

const order = (a: Gap, b: Gap): number =>
  b.times - a.times || b.last_asked.created_at - a.last_asked.created_at

/** Puts a turn where it belongs: with the questions that it is most like, or beside them. */
function take(kept: Kept[], row: AskedTurn, vector: Float32Array): void {
  let best: Kept | undefined
  let likeness = 0
  for (const each of kept) {
    const cosine = dot(each.vector, vector)
    if (cosine > likeness) [best, likeness] = [each, cosine]
  }
  const faults = faultsOf(row)
  const place = { conversation_id: row.conversationId, turn: row.turn, created_at: row.createdAt }
  if (faults.length === 0) {
    if (best && likeness >= SAME) best.gap.answered_since = place
    return
  }
  const question = clip(row.question, LONGEST_TEXT)
  let gap = best?.gap
  if (!gap || likeness < ALIKE) {
    gap = { question, times: 0, examples: [], faults: {}, reasons: {}, last_asked: place, nearest: [] }
    kept.push({ gap, vector })
  }
  gap.times += 1
  gap.last_asked = place
  delete gap.answered_since
  const isNew = gap.question !== question && !gap.examples.includes(question)
  if (isNew && gap.examples.length < MOST_EXAMPLES) gap.examples.push(question)
  for (const fault of faults) gap.faults[fault] = (gap.faults[fault] ?? 0) + 1
  for (const reason of readStored(Reasons(), row.reasons).flat()) {
    const isKnown = Object.hasOwn(gap.reasons, reason)
    if (isKnown || Object.keys(gap.reasons).length < MOST_REASONS)
      gap.reasons[reason] = (isKnown ? gap.reasons[reason]! : 0) + 1
  }
  if (row.passages !== null) gap.nearest = nearestIn(row.passages)
}

const Reasons = once(() => v.array(stringsShape()))

function faultsOf({ declined, bare, warned, reasons, again }: AskedTurn): string[] {
  return [
    ...(declined ? ['declined'] : bare ? ['cites_nothing'] : []),
    ...(warned ? ['warned'] : []),
    ...(reasons === '[]' ? [] : ['rated_down']),
    ...(again ? ['asked_again'] : []),
  ]
}

/** The first documents of a turn's row: null where it has fewer. */
const Passages = once(() => v.array(v.nullable(passageShape())))

const nearestIn = (passages: string): Gap['nearest'] =>
  readStored(Passages(), passages)
    .flatMap((passage) =>
      passage === null
        ? []
        : {
            collection: passage.collection,
            document_id: passage.id,
            ...(passage.title !== undefined && { title: clip(passage.title, LONGEST_TEXT) }),
            ...(passage.url !== undefined && { url: clip(passage.url, LONGEST_TEXT) }),
          },
    )
    .slice(0, MOST_NEAREST)
