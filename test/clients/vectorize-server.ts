/** The Vectorize double in a process that outlives Parley's, asked by own-server.mjs. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { NUMBERS, STRINGS } from '../../src/search/vectorize/labels'
import { VectorizeDouble } from '../search/vectorize/double'

export interface VectorizeServer {
  url: string
  double: VectorizeDouble
  stop(): Promise<void>
}

/** Mutations that came since are processed this often. */
const JOB_MS = 200

export async function startVectorize(dimensions: number): Promise<VectorizeServer> {
  const double = new VectorizeDouble(dimensions)
  for (const property of STRINGS) double.createMetadataIndex(property, 'string')
  for (const property of NUMBERS) double.createMetadataIndex(property, 'number')
  const jobs = setInterval(() => double.runJob(), JOB_MS)
  const server = createServer(async (request, response) => {
    let body = ''
    try {
      for await (const piece of request) body += piece
    } catch {
      // Its sender was killed.
      return
    }
    const { method, args } = JSON.parse(body) as {
      method: 'query'
      args: Parameters<VectorizeDouble['query']>
    }
    const answer = await (async () => ({ value: await double[method](...args) }))().catch((error) => ({
      error: String(error),
    }))
    response.end(JSON.stringify(answer))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    double,
    async stop() {
      clearInterval(jobs)
      server.closeAllConnections()
      server.close()
    },
  }
}
