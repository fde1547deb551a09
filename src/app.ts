/** Mounts the APIs and what they share: errors and CORS. */
import { Hono } from 'hono'

export const app = new Hono<{ Bindings: Env }>()

app.get('/health', (context) => context.json({ ok: true }))
