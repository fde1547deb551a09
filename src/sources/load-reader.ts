/** Loads the reader of pages, a module beside the Worker's bundle (scripts/reader.mjs). */
import type * as reader from '../../scripts/parley/import/reader.mjs'

export type Reader = typeof reader
export type { Rules } from '../../scripts/parley/import/reader.mjs'

/** A name that the bundler does not see: it leaves the module where it is. */
const MODULE = './reader.mjs'

export const loadReader = (): Promise<Reader> => import(/* @vite-ignore */ MODULE)
