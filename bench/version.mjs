/** One version's server, for versions.mjs: tells its address, and its CPU in seconds when asked. */
import { join } from 'node:path'

const { startServer } = await import(join(process.argv[2], 'bench/server.mjs'))
const server = await startServer()
process.on('message', async (message) => {
  if (message === 'cpu') return process.send(server.cpu())
  await server.close()
  process.exit(0)
})
process.send({ url: server.url })
