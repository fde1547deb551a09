/** The Worker's entry point: its handlers, and the Durable Object classes that the platform looks for here. */
import { app } from './app'
import { sweepExpired } from './conversation/expiry'
import { deleteExpiredApiKeys } from './db/api-keys'
import { requireOwnDatabase } from './db/owner'
import { runDueSets } from './question-sets/run'
import { readDueSources } from './sources/due'
import { sendWebhooks } from './webhooks/send'
import { gatherWeek } from './webhooks/weekly'

export { AgentSocket } from './api/ui-stream/agent-socket'
export { Conversation } from './conversation/conversation'
export { Collection } from './search/collection/object'
export { Source } from './sources/object'

export default {
  fetch: (request, env, context) => app.fetch(request, env, context),
  async scheduled(controller, env) {
    const now = Math.floor(controller.scheduledTime / 1000)
    await requireOwnDatabase(env)
    await Promise.all([
      sweepExpired(env, now),
      deleteExpiredApiKeys(env.DB, now),
      readDueSources(env),
      runDueSets(env),
      sendWebhooks(env),
      gatherWeek(env),
    ])
  },
} satisfies ExportedHandler<Cloudflare.Env>
