/** The Vectorize double in a process that outlives Parley's, asked by own-server.mjs. */
import { serve } from '../serve'
import { VectorizeDouble } from '../vectorize/double'

export interface VectorizeServer {
  url: string
  double: VectorizeDouble
  stop(): Promise<void>
}

/** Mutations that came since are processed this often. */
const JOB_MS = 200

export async function startVectorize(dimensions: number): Promise<VectorizeServer> {
  const double = new VectorizeDouble(dimensions)
  const jobs = setInterval(() => double.runJob(), JOB_MS)
  const served = await serve(async (request, response) => {
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
  return {
    url: served.url,
    double,
    async stop() {
      clearInterval(jobs)
      await served.stop()
    },
  }
}
