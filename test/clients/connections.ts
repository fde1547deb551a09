import { inject } from 'vitest'
import { turnTo } from './harness'

// Files share what they import, and another one may have turned to a Parley of its own.
turnTo(inject('url'))

// Vitest's: servers and commands that a test starts take the bundle and the pages that are there (global-setup.ts).
delete process.env.NODE_ENV

/**
 * Gives each `fetch` of a test a connection of its own.
 *
 * workerd closes a connection that was idle for five seconds, and Node's `fetch` leaves one after four. On a busy machine a test may
 * stand still for longer than the second in between. It then sends its next request on a connection that the server has closed
 * meanwhile, which fails with "fetch failed: other side closed". Nothing of Parley can prevent that: only the client knows what it is
 * about to send. Clients that people use ask again.
 */
const GLOBAL = Symbol.for('undici.globalDispatcher.1')
type Dispatcher = new (options: { pipelining: number }) => object
const globals = globalThis as unknown as Record<symbol, { constructor: Dispatcher }>

// Node sets its dispatcher when the first of its classes is asked for.
void new Headers()
const { constructor: Agent } = globals[GLOBAL]!
Object.assign(globals, { [GLOBAL]: new Agent({ pipelining: 0 }) })
