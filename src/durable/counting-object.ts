import { DurableObject } from 'cloudflare:workers'
import { counting } from '../lib/waiting'

/** A Durable Object whose outgoing calls are counted together (lib/waiting.ts). */
export class CountingObject extends DurableObject {
  constructor(context: DurableObjectState, env: Cloudflare.Env) {
    super(context, counting(env))
  }
}
