/**
 * A counterpart of Cloudflare's API for tests of the deployment, with an account's state: what the real wrangler asks
 * for on its way through `npm run deploy`. The database is a real SQLite, so migrations really run.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import { type CatalogueModel, catalogue, modelRoutes } from './cloudflare-models'
import {
  isTemporary,
  Refusal,
  requireTemporary,
  TEMPORARY_ACCOUNT,
  TEMPORARY_ROUTES,
} from './cloudflare-temporary'

export const ACCOUNT = '0123456789abcdef0123456789abcdef'

interface Index {
  config: { dimensions: number; metric: string }
}

interface Worker {
  secrets: Map<string, string>
  bindings: { name: string; type: string; [key: string]: unknown }[]
  crons: string[]
  /** uploads: of a new Worker and of new versions */
  uploads: number
  limits?: { cpu_ms?: number }
  placement?: Record<string, unknown>
  /** its versions, the newest last, each with the tag of the last migration of objects that it knows */
  versions?: { id: string; tag: string }[]
  /** the version that serves */
  active?: string
}

interface KeptDatabase {
  uuid: string
  jurisdiction?: string
  location?: string
  sqlite: DatabaseSync
}

export interface CloudflareApi {
  url: string
  /** those that the token may use */
  accounts: { id: string; name: string }[]
  /** the account's Workers plan; undefined: the token may not see it */
  plan: 'free' | 'paid' | undefined
  /** the catalogue of Workers AI */
  models: CatalogueModel[]
  databases: Map<string, KeptDatabase>
  indexes: Map<string, Index>
  workers: Map<string, Worker>
  /** `METHOD path` of every call that was made, the account left out */
  calls: string[]
  /** Calls that change something, by `METHOD path`. */
  changes(): string[]
  /** Answers the next call that matches with this error, once. */
  refuseOnce(call: RegExp, status: number, code: number, message: string): void
  close(): Promise<void>
}

const read = async (request: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** A fake account without anything in it. */
export async function startCloudflareApi(): Promise<CloudflareApi> {
  const accounts: CloudflareApi['accounts'] = [{ id: ACCOUNT, name: 'Test account' }]
  const databases: CloudflareApi['databases'] = new Map()
  const indexes: CloudflareApi['indexes'] = new Map()
  const workers: CloudflareApi['workers'] = new Map()
  const calls: string[] = []
  const account: Pick<CloudflareApi, 'plan' | 'models'> = { plan: 'paid', models: catalogue() }
  const refusals: { call: RegExp; refusal: Refusal }[] = []

  const database = (key: string) => {
    const found = [...databases].find(([name, { uuid }]) => name === key || uuid === key)
    if (found === undefined) throw new Refusal(404, 7404, `The database ${key} could not be found`)
    return { name: found[0], ...found[1] }
  }
  const index = (name: string) => {
    const found = indexes.get(name)
    if (found === undefined) throw new Refusal(404, 3000, 'vectorize.index.not_found')
    return { name, ...found }
  }
  const worker = (name: string) => {
    const found = workers.get(name)
    if (found === undefined) throw new Refusal(404, 10007, 'This Worker does not exist on your account.')
    return found
  }

  const versions = (name: string) => worker(name).versions ?? []
  const versionOf = (name: string, id: string) => {
    const found = versions(name).find((version) => version.id === id)
    if (found === undefined) throw new Refusal(404, 10200, `There is no version ${id}`)
    const metadata = {
      created_on: '2026-11-22T10:00:00Z',
      source: 'wrangler',
      author_email: 'me@example.com',
    }
    return { id, metadata, annotations: {}, number: 1, resources: { bindings: [], script: {} } }
  }
  const activeOf = (name: string) => {
    const { active } = worker(name)
    const deployment = { id: 'deployment', created_on: '2026-11-22T10:00:00Z', source: 'wrangler' }
    return active === undefined
      ? []
      : [{ ...deployment, versions: [{ version_id: active, percentage: 100 }], annotations: {} }]
  }
  /** The platform refuses to roll back past a migration of objects; its documentation gives no code. */
  const activate = async (request: Request, name: string) => {
    const { versions: wanted } = (await request.json()) as { versions?: { version_id: string }[] }
    const id = wanted?.[0]?.version_id
    const tagOf = (version?: string) => versions(name).find((each) => each.id === version)?.tag
    if (id !== undefined && tagOf(id) !== tagOf(worker(name).active)) {
      throw new Refusal(400, 10000, 'A Durable Object migration has occurred since this version.')
    }
    if (id !== undefined) worker(name).active = id
    return { id: crypto.randomUUID() }
  }

  /** Time Travel's bookmarks are dumps here. Virtual tables are left out, which is enough for what tests change. */
  const bookmarks = new Map<string, Uint8Array>()
  const bookmark = (sqlite: DatabaseSync) => {
    const id = `bookmark-${bookmarks.size}`
    bookmarks.set(id, sqlite.serialize())
    return { bookmark: id }
  }
  const restore = (key: string, to: string) => {
    const kept = bookmarks.get(to)
    if (kept === undefined) throw new Refusal(400, 7500, `There is no bookmark ${to}`)
    const { sqlite } = database(key)
    const previous = bookmark(sqlite)
    sqlite.deserialize(kept)
    return { bookmark: to, previous_bookmark: previous.bookmark, message: '' }
  }

  /** What D1's `query` answers: one result a statement. */
  const query = (sqlite: DatabaseSync, sql: string) => {
    const meta = { duration: 0, changes: 0, last_row_id: 0, rows_read: 0, rows_written: 0 }
    if (/^\s*select/i.test(sql)) return [{ success: true, results: sqlite.prepare(sql).all(), meta }]
    sqlite.exec(sql)
    return [{ success: true, results: [], meta }]
  }

  const upload = async (name: string, request: Request) => {
    const metadata = JSON.parse(String((await request.formData()).get('metadata')))
    if (isTemporary(request)) requireTemporary(metadata)
    if (metadata.limits?.cpu_ms !== undefined && account.plan !== 'paid') {
      throw new Refusal(400, 100328, 'CPU limits are not supported for the Free plan.')
    }
    const before = workers.get(name)
    const secrets = new Map(before?.secrets) // uploads never delete a secret
    for (const binding of metadata.bindings) {
      if (binding.type === 'secret_text') secrets.set(binding.name, binding.text)
    }
    workers.set(name, {
      secrets,
      bindings: metadata.bindings.filter((binding: { type: string }) => binding.type !== 'secret_text'),
      crons: before?.crons ?? [],
      uploads: (before?.uploads ?? 0) + 1,
      limits: metadata.limits,
      placement: metadata.placement,
    })
    return {
      id: crypto.randomUUID(),
      deployment_id: crypto.randomUUID().replaceAll('-', ''),
      startup_time_ms: 5,
      resources: { script: { etag: 'etag' } },
    }
  }

  const settings = (name: string) => {
    const { bindings, secrets } = worker(name)
    const hidden = [...secrets.keys()].map((secret) => ({ name: secret, type: 'secret_text' }))
    return { bindings: [...bindings, ...hidden], tags: [] }
  }

  type Handler = (request: Request, ...names: string[]) => unknown
  const json = async (request: Request) =>
    (await request.json()) as {
      name: string
      jurisdiction: string
      primary_location_hint: string
      sql: string
      config: Index['config']
      propertyName: string
      indexType: string
    }
  const routes: [pattern: RegExp, handler: Handler][] = [
    ...TEMPORARY_ROUTES,
    ...modelRoutes(() => account.models),
    [/^GET \/user\/tokens\/verify$/, () => ({ id: 'token', status: 'active' })],
    [/^GET \/user$/, () => ({ id: 'user', email: 'developer@example.com' })],
    [/^GET \/accounts$/, () => accounts],
    [/^GET \/memberships$/, () => accounts.map((account) => ({ id: account.id, account, roles: [] }))],

    [
      /^GET \/subscriptions$/,
      () => {
        if (account.plan === undefined) throw new Refusal(403, 10000, 'Authentication error')
        return account.plan === 'paid' ? [{ state: 'Paid', rate_plan: { id: 'workers_paid' } }] : []
      },
    ],

    [
      /^GET \/d1\/database$/,
      () => [...databases].map(([name, { uuid, jurisdiction }]) => ({ name, uuid, jurisdiction })),
    ],
    [
      /^POST \/d1\/database$/,
      async (request) => {
        const { name, jurisdiction, primary_location_hint: location } = await json(request)
        if (isTemporary(request) && databases.size > 0)
          throw new Refusal(400, 7406, 'A temporary account has one database')
        if (databases.has(name)) throw new Refusal(400, 7502, `Database with name '${name}' already exists`)
        const sqlite = new DatabaseSync(':memory:')
        databases.set(name, { uuid: crypto.randomUUID(), sqlite, jurisdiction, location })
        return { name, uuid: databases.get(name)!.uuid }
      },
    ],
    [
      /^GET \/d1\/database\/([^/]+)$/,
      (_, key) => ({ ...database(key!), sqlite: undefined, version: 'production' }),
    ],
    [
      /^POST \/d1\/database\/([^/]+)\/query$/,
      async (request, key) => {
        try {
          return query(database(key!).sqlite, (await json(request)).sql)
        } catch (error) {
          throw error instanceof Refusal ? error : new Refusal(400, 7500, (error as Error).message)
        }
      },
    ],
    [/^DELETE \/d1\/database\/([^/]+)$/, (_, key) => databases.delete(database(key!).name) && null],
    [
      /^GET \/d1\/database\/([^/]+)\/time_travel\/bookmark$/,
      (request, key) => {
        const isPast = new URL(request.url).searchParams.has('timestamp')
        // Tests that name a time mean the last state that was asked about.
        const last = [...bookmarks.keys()].at(-1)
        return isPast && last !== undefined ? { bookmark: last } : bookmark(database(key!).sqlite)
      },
    ],
    [
      /^POST \/d1\/database\/([^/]+)\/time_travel\/restore$/,
      (request, key) => restore(key!, new URL(request.url).searchParams.get('bookmark') ?? ''),
    ],
    [
      /^POST \/d1\/database\/([^/]+)\/export$/,
      (_, key) => {
        const sql = "SELECT 1 FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%'"
        if (database(key!).sqlite.prepare(sql).get() === undefined)
          return { success: false, error: 'not here' }
        throw new Refusal(400, 7500, 'D1 Export error: cannot export databases with Virtual Tables (fts5)')
      },
    ],

    [/^GET \/vectorize\/v2\/indexes$/, () => [...indexes].map(([name, { config }]) => ({ name, config }))],
    [
      /^POST \/vectorize\/v2\/indexes$/,
      async (request) => {
        const { name, config } = await json(request)
        if (indexes.has(name)) throw new Refusal(409, 3002, 'vectorize.index.duplicate_name')
        indexes.set(name, { config })
        return { name, config }
      },
    ],
    [/^DELETE \/vectorize\/v2\/indexes\/([^/]+)$/, (_, name) => indexes.delete(index(name!).name) && null],

    [
      /^GET \/workers\/services\/([^/]+)$/,
      (_, name) => worker(name!) && { default_environment: { script: { last_deployed_from: 'wrangler' } } },
    ],
    // A Worker's objects, secrets and versions go with it.
    [/^DELETE \/workers\/scripts\/([^/]+)$/, (_, name) => worker(name!) && workers.delete(name!) && null],
    [
      /^GET \/workers\/scripts\/([^/]+)\/secrets$/,
      (_, name) => [...worker(name!).secrets.keys()].map((secret) => ({ name: secret, type: 'secret_text' })),
    ],
    [/^GET \/workers\/scripts\/([^/]+)\/(?:script-)?settings$/, (_, name) => settings(name!)],
    [/^PATCH \/workers\/scripts\/([^/]+)\/script-settings$/, (_, name) => settings(name!)],
    [/^GET \/workers\/scripts\/([^/]+)\/deployments$/, (_, name) => ({ deployments: activeOf(name!) })],
    [/^POST \/workers\/scripts\/([^/]+)\/deployments$/, (request, name) => activate(request, name!)],
    [
      /^GET \/workers\/scripts\/([^/]+)\/versions$/,
      (_, name) => ({ items: versions(name!).map(({ id }) => versionOf(name!, id)) }),
    ],
    [/^GET \/workers\/scripts\/([^/]+)\/versions\/([^/]+)$/, (_, name, id) => versionOf(name!, id!)],
    [/^PUT \/workers\/scripts\/([^/]+)$/, (request, name) => upload(name!, request)],
    [
      /^POST \/workers\/scripts\/([^/]+)\/versions$/,
      (request, name) => worker(name!) && upload(name!, request),
    ],
    [/^POST \/workers\/scripts\/([^/]+)\/assets-upload-session$/, () => ({ jwt: 'jwt', buckets: [] })],
    [
      /^(?:GET|POST) \/workers\/scripts\/([^/]+)\/subdomain$/,
      () => ({ enabled: true, previews_enabled: false }),
    ],
    [/^GET \/workers\/subdomain$/, () => ({ subdomain: 'developer' })],
    [
      /^PUT \/workers\/scripts\/([^/]+)\/schedules$/,
      async (request, name) => {
        const schedules = (await request.json()) as { cron: string }[]
        worker(name!).crons = schedules.map(({ cron }) => cron)
        return { schedules }
      },
    ],
  ]

  const answer = async (call: string, request: Request): Promise<unknown> => {
    const refused = refusals.findIndex((entry) => entry.call.test(call))
    if (refused >= 0) throw refusals.splice(refused, 1)[0]!.refusal
    for (const [pattern, handler] of routes) {
      const match = pattern.exec(call)
      if (match) return handler(request, ...match.slice(1))
    }
    throw new Refusal(404, 7003, `The fake of Cloudflare's API has no ${call}`)
  }

  const server = createServer(async (incoming, outgoing) => {
    const { pathname, search } = new URL(incoming.url!, 'http://fake')
    const isOther = pathname.includes(TEMPORARY_ACCOUNT)
    const own = `/accounts/${isOther ? TEMPORARY_ACCOUNT : ACCOUNT}`
    const call = `${incoming.method} ${pathname.replace('/client/v4', '').replace(own, '')}`
    calls.push(call)
    const body = await read(incoming)
    const request = new Request(`http://fake/${search}`, {
      method: incoming.method!,
      headers: {
        'content-type': incoming.headers['content-type'] ?? 'text/plain',
        authorization: incoming.headers.authorization ?? '',
      },
      ...(body.length > 0 ? { body } : {}),
    })
    const reply = await answer(call, request).then(
      (result) => ({ status: 200, success: true, errors: [] as object[], result }),
      (error) => {
        const { status, code, message } =
          error instanceof Refusal ? error : new Refusal(500, 10000, `${error}`)
        return { status, success: false, errors: [{ code, message }], result: null }
      },
    )
    const count = Array.isArray(reply.result) ? reply.result.length : 1
    const result_info = { page: 1, per_page: 100, count, total_count: count, total_pages: 1 }
    outgoing.writeHead(reply.status, { 'content-type': 'application/json' })
    outgoing.end(JSON.stringify({ ...reply, messages: [], result_info }))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')

  return Object.assign(account, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/client/v4`,
    accounts,
    databases,
    indexes,
    workers,
    calls,
    changes: () => calls.filter((call) => !call.startsWith('GET ')),
    refuseOnce: (call: RegExp, status: number, code: number, message: string) =>
      void refusals.push({ call, refusal: new Refusal(status, code, message) }),
    close: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  })
}
