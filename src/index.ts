/** The Worker's entry: what the platform calls, and the Durable Objects it has to find here. Nothing else. */
import { app } from './app'
import { sweepExpired } from './conversation/expiry'

export { Conversation } from './conversation/conversation'
export { Collection } from './search/collection'

export default {
  fetch: (request, env, context) => app.fetch(request, env, context),
  scheduled: (controller, env) => sweepExpired(env, Math.floor(controller.scheduledTime / 1000)),
} satisfies ExportedHandler<Env>
