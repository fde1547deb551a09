/** What start-up is measured against: a bare Hono Worker of the same Durable Objects. */
import { Hono } from 'hono'

export class Conversation {}
export class Collection {}
export class Source {}
export class AgentSocket {}

export default new Hono().get('/health', (context) => context.json({ ok: true }))
