/**
 * `npm run bench [import|embedding|search|busy|growth|mixed|waking|memory|stream|encoders|adapters|history|listings|sweep|load|engines|hostile|hostile-models|quality|ranking|agentic|support|start|free|widget|typesense]`:
 * all without a name. Prints ratios and a table.
 */
import '../scripts/installed.mjs'
import { benchAdapters } from './adapters.mjs'
import { benchAgentic } from './agentic.mjs'
import { benchEmbedding } from './embedding.mjs'
import { benchEncoders } from './encoders.mjs'
import { benchEngines } from './engines.mjs'
import { benchFree } from './free.mjs'
import { benchGrowth } from './growth.mjs'
import { benchHistory } from './history.mjs'
import { benchHostile } from './hostile.mjs'
import { benchHostileModels } from './hostile-models.mjs'
import { benchImport } from './import.mjs'
import { benchListings } from './listings.mjs'
import { benchLoad } from './load.mjs'
import { benchMemory } from './memory.mjs'
import { benchMixed } from './mixed.mjs'
import { benchQuality } from './quality.mjs'
import { benchRanking } from './ranking.mjs'
import { table } from './report.mjs'
import { benchSearch, benchSearchDuringImport } from './search.mjs'
import { startServer } from './server.mjs'
import { benchStart } from './start.mjs'
import { benchStream } from './stream.mjs'
import { benchSupport } from './support.mjs'
import { benchSweep } from './sweep.mjs'
import { benchTypesense } from './typesense.mjs'
import { benchWaking } from './waking.mjs'
import { benchWidget, buildPages } from './widget.mjs'

const benches = {
  import: benchImport,
  embedding: benchEmbedding,
  search: benchSearch,
  busy: benchSearchDuringImport,
  growth: benchGrowth,
  mixed: benchMixed,
  waking: benchWaking,
  memory: benchMemory,
  stream: benchStream,
  encoders: benchEncoders,
  adapters: benchAdapters,
  history: benchHistory,
  listings: benchListings,
  sweep: benchSweep,
  load: benchLoad,
  engines: benchEngines,
  quality: benchQuality,
  ranking: benchRanking,
  agentic: benchAgentic,
  support: benchSupport,
  start: benchStart,
  free: benchFree,
  widget: benchWidget,
  typesense: benchTypesense,
  hostile: benchHostile,
  'hostile-models': benchHostileModels,
}

/** They start servers themselves: that is part of what they measure, or another version is. */
const OWN_SERVERS = ['start', 'free', 'memory', 'mixed', 'waking', 'engines', 'support']

const wanted = process.argv.slice(2)
const unknown = wanted.find((name) => !(name in benches))
if (unknown) {
  console.error(`There is no benchmark ${unknown}; there are ${Object.keys(benches).join(', ')}.`)
  process.exit(2)
}
for (const name of wanted.length > 0 ? wanted : Object.keys(benches)) {
  if (OWN_SERVERS.includes(name)) {
    await benches[name]()
    continue
  }
  if (name === 'widget') await buildPages()
  const server = await startServer()
  try {
    await benches[name](server)
  } finally {
    await server.close()
  }
}
if (
  ![
    'quality',
    'ranking',
    'agentic',
    'start',
    'free',
    'widget',
    'mixed',
    'memory',
    'support',
    'typesense',
  ].includes(wanted.join())
)
  console.log(`\n${table()}`)
