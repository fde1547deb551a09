/** Where the pages of a source come from: a website, a bucket of R2, or a Git archive. */
import type { Fetched } from './fetch-page'
import type { Page } from './reader'
import type { KnownPage, Pages } from './source'

/** What a new run finds. */
export interface Listed {
  /** addresses of pages to read, in order */
  queue: string[]
  /** of pages that are as they were */
  unchanged: number
  failures: { url: string; error: string }[]
  /** what else is kept of the run (source.ts) */
  follows?: boolean
  is_list?: boolean
  etag?: string
}

export interface Origin {
  /** Makes ready for a step. @param left of a run that goes on @throws what keeps all of it from being read */
  open(left: Pages | undefined): Promise<void>
  /** @param left of the last run @throws what keeps all of it from being read */
  list(left: Pages | undefined): Promise<Listed>
  /** Whether this step has asked for as much as it may. */
  isSpent(): boolean
  belongs(address: string): boolean
  /** What is there: 304 as it was known, 404 nothing. @throws Error in words for whoever runs the source */
  fetch(address: string, known?: KnownPage): Promise<Fetched>
  /** @throws Error for a page without text */
  pageOf(fetched: Fetched, address: string): Page
  /** What its documents say of where they come from. `url`: where people read it, if no page says so itself. */
  whereOf(address: string): { source: string; section: string; path?: string; url?: string }
  /** A page that tells what language its texts have. */
  first(): Promise<Page | undefined>
}
