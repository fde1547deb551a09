/** What the widget keeps in the browser: the visitor's secret, which conversation is open, and what is being typed. */

const VISITOR = 'parley.visitor'
const ANSWERED = ' answered'

type Store = 'localStorage' | 'sessionStorage'

/** A store that is not there, as in a sandboxed frame or with cookies blocked, keeps nothing. */
function read(name: string, store: Store = 'localStorage'): string | undefined {
  try {
    return globalThis[store].getItem(name) ?? undefined
  } catch {
    return undefined
  }
}

function write(name: string, value: string | undefined, store: Store = 'localStorage'): void {
  try {
    if (value === undefined) globalThis[store].removeItem(name)
    else globalThis[store].setItem(name, value)
  } catch {
    // Kept for as long as the page is open.
  }
}

let unkept: string | undefined

/** The secret that tells this browser apart from others with the same key: two UUIDs, made once. */
export function visitorSecret(): string {
  const kept = read(VISITOR) ?? unkept
  if (kept !== undefined) return kept
  unkept = randomId() + randomId()
  write(VISITOR, unkept)
  return unkept
}

/** A random UUID, also on pages without https, where `crypto.randomUUID` is missing. */
export function randomId(): string {
  if (typeof crypto.randomUUID === 'function') return crypto.randomUUID()
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Which conversation with an assistant is open in this browser, shared by all of its tabs. */
export class OpenConversation {
  readonly #name: string

  constructor(server: string, assistant: string) {
    this.#name = `parley.conversation ${server} ${assistant}`
  }

  get id(): string | undefined {
    return read(this.#name)?.split(' ')[0]
  }

  /** whether a question of it was answered: until then there is nothing to go on from */
  get answered(): boolean {
    return read(this.#name)?.endsWith(ANSWERED) ?? false
  }

  keep(id: string | undefined, answered: boolean): void {
    write(this.#name, id && answered ? id + ANSWERED : id)
  }
}

/** A question that is being typed in a tab. It outlives a reload. */
export class Draft {
  readonly #name: string
  #text: string

  constructor(server: string, assistant: string) {
    this.#name = `parley.draft ${server} ${assistant}`
    this.#text = read(this.#name, 'sessionStorage') ?? ''
  }

  get text(): string {
    return this.#text
  }

  set text(text: string) {
    this.#text = text
    write(this.#name, text === '' ? undefined : text, 'sessionStorage')
  }
}
