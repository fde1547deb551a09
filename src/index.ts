/** The Worker's entry: what the platform calls, and the Durable Objects it has to find here. Nothing else. */
import { app } from './app'
import { sweepExpired } from './conversation/expiry'
import { deleteExpiredApiKeys } from './db/api-keys'
import { database } from './db/client'
import { requireOwnDatabase } from './db/owner'

export { Conversation } from './conversation/conversation'
export { Collection } from './search/collection/object'

export default {
  fetch: (request, env, context) => app.fetch(request, env, context),
  async scheduled(controller, env) {
    const now = Math.floor(controller.scheduledTime / 1000)
    await requireOwnDatabase(env)
    await Promise.all([sweepExpired(env, now), deleteExpiredApiKeys(database(env), now)])
  },
} satisfies ExportedHandler<Cloudflare.Env>
