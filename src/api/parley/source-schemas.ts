/** Schemas of requests that manage sources. Like schemas.ts, this file imports nothing of the Worker. */
import * as v from 'valibot'
import { once } from '../../lib/once.ts'
import { CollectionName } from './schemas.ts'

const LONGEST_URL = 2_048
const WEEK = 7 * 24 * 60
const SHORTEST = 5
/** A page and what is known of it takes some 200 bytes of a row of D1. */
const MOST_PAGES = 5_000

const SourceName = once(() =>
  v.pipe(
    v.string(),
    v.regex(/^[a-zA-Z0-9._-]{1,128}$/, 'Expected 1 to 128 letters, digits, dots, hyphens and underscores.'),
  ),
)

export const SourcePath = once(() => v.object({ name: SourceName() }))

const Whole = (least: number, most: number, description: string) =>
  v.pipe(v.number(), v.integer(), v.minValue(least), v.maxValue(most), v.description(description))

export const SourceBody = once(() =>
  v.strictObject({
    url: v.pipe(
      v.string(),
      v.maxLength(LONGEST_URL),
      v.url('Expected the address of a website, a bucket or an archive.'),
      v.description(
        'Where the site begins: pages below it are read, those of its sitemaps, else those that links lead to. Or `r2://NAME/FOLDER/` of the bucket that is bound as BUCKET_NAME, or a Git archive (`.tar.gz`, `.tgz`), with `#FOLDER` for a part of it',
      ),
    ),
    base_url: v.optional(
      v.pipe(
        v.string(),
        v.maxLength(LONGEST_URL),
        v.regex(/^https?:\/\/\S+$/, 'Expected the address of a website.'),
        v.description(
          'Where the files of a bucket or an archive are read on the web. Those of GitHub and GitLab have the pages of their repository without it',
        ),
      ),
    ),
    collection: v.pipe(CollectionName(), v.description('It is made where there is none')),
    every_minutes: v.optional(
      Whole(SHORTEST, 4 * WEEK, 'From the beginning of a run to that of the next'),
      1_440,
    ),
    prune: v.optional(
      v.pipe(
        v.boolean(),
        v.description(
          'Whether the documents of a page that answers 404 or 410, or of a file that is gone, are removed',
        ),
      ),
      false,
    ),
    max_pages: v.optional(Whole(1, MOST_PAGES, 'More are not read'), 1_000),
    embedding: v.optional(
      v.pipe(v.string(), v.minLength(1), v.description('Makes the vectors, for a collection that is made')),
    ),
  }),
)
