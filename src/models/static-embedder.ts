/**
 * `local/minilm-l6-static`: sentence vectors from a table, without a call or a network.
 *
 * The table holds a vector for each word piece, distilled from all-MiniLM-L6-v2 (see models/README.md beside the
 * table). It is a static asset of the Worker: 8 MB would not fit into a script, and most isolates never embed
 * anything. The first text that an isolate embeds loads it, once for all collections there.
 */
import { ApiError, reasonOf } from '../errors'
import type { EmbeddingModel } from './embedding-model'
import { PassageReader, StaticTable } from './static-embedder/reader'

export const STATIC_EMBEDDER = 'local/minilm-l6-static'
export const STATIC_DIMENSIONS = 256

/** The table's path among the assets (ui/). */
const PATH = '/models/minilm-l6-static.bin'
/** Texts in a batch. A batch takes about a tenth of a second, then other work gets a turn. */
const BATCH_SIZE = 500
/**
 * Weight of these vectors when they are combined with words. With any weight from 0.35 to 0.5, the combination was better than either
 * alone on every set of questions measured, and about equally so.
 */
const WEIGHT = 0.4

// Only the loaded table is shared in the isolate, not the promise of it. A promise belongs to the request that made
// it, and may never settle if that request is aborted.
let loaded: StaticTable | undefined
let reader: PassageReader | undefined

/** @throws ApiError 503 if the asset cannot be read */
async function load(assets: Fetcher | undefined): Promise<StaticTable> {
  if (loaded !== undefined) return loaded
  try {
    if (assets === undefined) throw new Error('there is no binding ASSETS')
    const response = await assets.fetch(`https://assets.local${PATH}`)
    if (!response.ok) throw new Error(`status ${response.status}`)
    loaded = new StaticTable(await response.arrayBuffer())
    return loaded
  } catch (error) {
    throw new ApiError(
      503,
      `The built-in embedding model could not be loaded from ${PATH}: ${reasonOf(error)}`,
    )
  }
}

/**
 * The reader of passages of this isolate, for searches without vectors too.
 * @throws ApiError 503 if the table cannot be loaded
 */
export async function passageReader({ ASSETS }: Pick<Cloudflare.Env, 'ASSETS'>): Promise<PassageReader> {
  reader ??= new PassageReader(await load(ASSETS))
  return reader
}

/** @param dimensions if more than the table's, the rest are zeros; if fewer, the first ones */
export function staticEmbedder(
  env: Pick<Cloudflare.Env, 'ASSETS'>,
  dimensions = STATIC_DIMENSIONS,
): EmbeddingModel {
  return {
    name: STATIC_EMBEDDER,
    weight: WEIGHT,
    batchSize: BATCH_SIZE,
    async embed(texts) {
      const table = await load(env.ASSETS)
      return texts.map((text) => table.embed(text, dimensions))
    },
    embedNow: (text) => loaded?.embed(text, dimensions),
    words: () => loaded?.words ?? new Map(),
    ready: async () => {
      await load(env.ASSETS)
    },
    reader: () => {
      if (loaded !== undefined) reader ??= new PassageReader(loaded)
      return reader
    },
  }
}
