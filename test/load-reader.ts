/** Stands in for src/sources/load-reader.ts in tests of the Worker, which are not bundled: the same reader from its source. */
export const loadReader = () => import('../scripts/parley/import/reader.mjs')
