/** Schemas of responses about sources, as response-schemas.ts has others. */
import * as v from 'valibot'

const Count = v.pipe(v.number(), v.integer(), v.minValue(0))
const Milliseconds = v.pipe(v.number(), v.integer(), v.description('Unix time in milliseconds'))

const Run = v.object({
  started_at: Milliseconds,
  ended_at: v.optional(Milliseconds),
  pages: v.pipe(Count, v.description('Pages, or files, that were looked at')),
  changed: v.pipe(Count, v.description('Pages that were imported')),
  unchanged: Count,
  gone: v.pipe(Count, v.description('Known pages that are not there any more, or ask not to be shown')),
  failed: Count,
  failures: v.pipe(
    v.array(v.object({ url: v.string(), error: v.string() })),
    v.description('The first 20 of them'),
  ),
  left: v.optional(v.pipe(Count, v.description('Pages, or files, that wait to be read'))),
})

export const Source = v.object({
  name: v.string(),
  kind: v.pipe(v.picklist(['website', 'bucket', 'archive']), v.description('By its address')),
  url: v.string(),
  base_url: v.optional(v.string()),
  collection: v.string(),
  every_minutes: Count,
  prune: v.boolean(),
  max_pages: Count,
  site: v.optional(
    v.pipe(
      v.object({ name: v.optional(v.string()), color: v.optional(v.string()) }),
      v.description('What the first page of a website says of it: its name, and its colour as CSS writes it'),
    ),
  ),
  state: v.picklist(['waiting', 'reading']),
  next_run_at: Milliseconds,
  run: v.optional(Run),
  last_run: v.optional(Run),
})

export const Sources = v.object({ sources: v.array(Source) })
