/**
 * `local/minilm-l6-static`: sentence vectors from a table, without a call and without a network.
 *
 * The table has a vector for each word piece, distilled from all-MiniLM-L6-v2 (models/README.md beside the table says
 * how). It is one of the Worker's static assets: 8 MB would not fit into a script, and most isolates never
 * embed anything. The first text that an isolate embeds has it loaded, once for all collections in it.
 */
import { ApiError, reasonOf } from '../errors'
import type { EmbeddingModel } from './embedding-model'
import { StaticTable } from './static-embedder/table'

export const STATIC_EMBEDDER = 'local/minilm-l6-static'
export const STATIC_DIMENSIONS = 256

/** Where the table lies among the assets (ui/). */
const PATH = '/models/minilm-l6-static.bin'
/** Texts a batch: about a tenth of a second, after which others get their turn. */
const BATCH_SIZE = 500
/**
 * Beside words. From 0.35 to 0.5 both together are better than the better of the two on every set that it was measured
 * on, and by nearly the same.
 */
const WEIGHT = 0.4

// Only the table is shared by all that runs in the isolate. The promise of it belongs to the request that asked, and
// may never be kept when that request is aborted.
let loaded: StaticTable | undefined

/** @throws ApiError 503 when the asset cannot be read */
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

/** @param dimensions other than the table's: more are zeros, fewer are the first ones */
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
    ready: async () => {
      await load(env.ASSETS)
    },
  }
}
