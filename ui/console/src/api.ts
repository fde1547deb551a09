/** The API key of this browser, and calls of Parley's API with it. */
import { signal } from '@preact/signals'
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import type { Field } from '../../../scripts/parley/import/schema.mjs'
import { visitorSecret } from '../../widget/src/storage'

/** A request that failed; `status` 0 where the server was not reached. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message)
  }

  /** What was thrown, as what a page can show. */
  static of(fault: unknown): Refusal {
    if (fault instanceof Refusal) return fault
    return new Refusal(0, fault instanceof Error ? fault.message : String(fault))
  }
}

/** @throws Refusal */
export async function call(path: string, init: RequestInit = {}, as = key.peek()): Promise<Response> {
  const headers = { 'x-parley-visitor': visitorSecret(), ...init.headers, 'x-typesense-api-key': as }
  let response: Response
  try {
    response = await fetch(path, { ...init, headers, credentials: 'omit' })
  } catch (error) {
    init.signal?.throwIfAborted()
    console.warn(error)
    throw new Refusal(0, 'Parley cannot be reached. Check that it is running and try again.')
  }
  if (response.ok) return response
  throw new Refusal(response.status, await reasonOf(response))
}

async function reasonOf(response: Response): Promise<string> {
  const body = await response.json().catch(() => ({}))
  const message = typeof body.message === 'string' ? body.message : ''
  const detail = typeof body.detail === 'string' ? body.detail : ''
  if (response.status === 401) return detail || 'Your API key may not do this.'
  if (response.status === 429) return 'There were too many requests at once. Wait a moment and try again.'
  const said = [message, detail].filter(Boolean).map(asSentence).join(' ')
  if (response.status < 500) return said || `The server answered with status ${response.status}.`
  return `${said || `Parley failed with status ${response.status}.`} Try again in a moment. If it fails again, its log says why.`
}

const asSentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`)

export async function read<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await call(path, signal ? { signal } : {})).json()
}

export async function send<T>(method: string, path: string, body?: unknown, headers = {}): Promise<T> {
  const json = body !== undefined && { body: JSON.stringify(body) }
  const type = json && { 'content-type': 'application/json' }
  return (await call(path, { method, headers: { ...headers, ...type }, ...json })).json()
}

/** What is asked for, or something in its place where the server refuses it. @param by with one of these; absent: at all */
export const orElse = <T, U>(asked: Promise<T>, instead: U, by?: number[]): Promise<T | U> =>
  asked.catch((error) => {
    if (error instanceof Refusal && (by === undefined || by.includes(error.status))) return instead
    throw error
  })

/**
 * Whether the server takes a key at all.
 * @throws Refusal where the server cannot say
 */
export const isTaken = (value: string): Promise<boolean> =>
  orElse(
    call('/conversations?limit=1', {}, value).then(() => true),
    false,
    [401],
  )

/** Has the console ask for another key where the server refuses this one. */
export async function checkKey(): Promise<void> {
  const value = key.peek()
  const taken = await isTaken(value).catch(() => true)
  if (!taken && key.peek() === value) refused.value = true
}

export interface Loaded<T> {
  data: T | undefined
  error: Refusal | undefined
  loading: boolean
  reload(): void
  /** Shows other data at once, as after a change that the server has taken. */
  set(data: T): void
}

/**
 * Data of a page, loaded again when `name` changes.
 * @param name what is loaded; undefined loads nothing
 */
export function useLoaded<T>(name: string | undefined, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [state, setState] = useState<{ name?: string | undefined; data?: T; error?: Refusal }>({})
  const [again, setAgain] = useState(0)
  const loader = useRef(load)
  loader.current = load
  // biome-ignore lint/correctness/useExhaustiveDependencies: `again` asks for the same once more
  useEffect(() => {
    if (name === undefined) return
    const abort = new AbortController()
    loader.current(abort.signal).then(
      (data) => !abort.signal.aborted && setState({ name, data }),
      (error) => {
        if (abort.signal.aborted) return
        setState((before) => ({ ...(before.name === name && before), name, error: Refusal.of(error) }))
      },
    )
    return () => abort.abort()
  }, [name, again])
  const current = state.name === name ? state : {}
  const reload = useCallback(() => {
    setState(({ name: of, data }) => ({ name: of, ...(data !== undefined && { data }) }))
    setAgain((count) => count + 1)
  }, [])
  // Data that comes late, when something else is shown already, is not shown.
  const set = useCallback(
    (data: T) => setState((before) => (before.name === name ? { name, data } : before)),
    [name],
  )
  const loading = name !== undefined && current.data === undefined && current.error === undefined
  return { data: current.data, error: current.error, loading, reload, set }
}

/** What a path answers. */
export const useRead = <T>(path: string): Loaded<T> => useLoaded(path, (signal) => read<T>(path, signal))

/** Loaded data that keeps what it shows while other data is on its way; `loading` tells that it is. */
export function useKept<T>(loaded: Loaded<T>): Loaded<T> {
  const last = useRef<T | undefined>(undefined)
  if (loaded.data !== undefined) last.current = loaded.data
  const data = loaded.data ?? last.current
  return { ...loaded, data }
}

/** Loaded data as a page wants it. */
export const mapped = <T, U>(loaded: Loaded<T>, to: (data: T) => U): Omit<Loaded<U>, 'set'> => ({
  ...loaded,
  data: loaded.data === undefined ? undefined : to(loaded.data),
})

interface Action<A extends unknown[]> {
  /** whether it runs */
  busy: boolean
  /** why it failed the last time */
  error: Refusal | undefined
  start(...args: A): Promise<void>
}

/** Something that a button or a form does. What it throws is shown, and it can be started again. */
export function useAction<A extends unknown[]>(run: (...args: A) => Promise<unknown>): Action<A> {
  const [state, setState] = useState<{ busy: boolean; error?: Refusal }>({ busy: false })
  return {
    busy: state.busy,
    error: state.error,
    async start(...args) {
      for (const arg of args) if (arg instanceof Event) arg.preventDefault()
      setState({ busy: true })
      try {
        await run(...args)
        setState({ busy: false })
      } catch (fault) {
        setState({ busy: false, error: Refusal.of(fault) })
      }
    },
  }
}

// =============================================================================
// The API key of this browser. A server on this machine has a key that everybody knows, until it is told another one.

const NAME = 'parley.key'
const isLocal = /^(localhost|127\.0\.0\.1|\[::1\])$/.test(location.hostname)

export const key = signal(
  sessionStorage.getItem(NAME) ?? localStorage.getItem(NAME) ?? (isLocal ? 'xyz' : ''),
)
/** whether the server has refused the key: the console then asks for another one */
export const refused = signal(false)

/** @param remember keeps it in this browser; otherwise it goes with the tab */
export function setKey(value: string, remember: boolean): void {
  sessionStorage.setItem(NAME, value)
  if (remember) localStorage.setItem(NAME, value)
  else localStorage.removeItem(NAME)
  refused.value = false
  key.value = value
}

export function forgetKey(): void {
  setKey('', false)
}

// =============================================================================
// Parley as the command line's import calls it.

type Options = { body?: string | object }

/** A body of text is sent as it is. */
const ask = (method: string, path: string, { body }: Options = {}): Promise<Response> =>
  call(path, { method, ...(body && { body: typeof body === 'string' ? body : JSON.stringify(body) }) })

export const server = {
  send: ask,
  call: async (method: string, path: string, options?: Options) => (await ask(method, path, options)).json(),
  /** Looked up in the list of its kind: a browser reports each answer of 404 as an error of the page. */
  find: async (path: string) => {
    const at = path.lastIndexOf('/')
    const name = decodeURIComponent(path.slice(at + 1))
    const listed = await read<Named[] | { assistants: Named[] }>(path.slice(0, at))
    const all = Array.isArray(listed) ? listed : listed.assistants
    return all.find((each) => (each.name ?? each.id) === name)
  },
}

interface Named {
  name?: string
  id?: string
  fields?: Field[]
}
