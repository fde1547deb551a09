/**
 * The address of a page stands behind the `#`, which browsers send to nobody: `#/collections/docs` is a page, `#<id>` a
 * conversation in the chat, and nothing at all a new conversation.
 */
import { computed, signal } from '@preact/signals'

/** The address of a new conversation. */
export const NEW = '#/'

const hash = signal(location.hash)

/** The page that shows a document to whoever holds a key. @param source its collection and id: `docs/guide/keys.md` */
export const pageOf = (source: string): string =>
  `/document#${source.split('/').map(encodeURIComponent).join('/')}`

/** The text that an encoding stands for; a text that is no encoding stands for itself. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

interface Place {
  /** the first word of a page's path; `chat` for a conversation */
  page: string
  /** the words after it, decoded */
  rest: string[]
  query: URLSearchParams
}

function parse(text: string): Place {
  const inside = text.replace(/^#\/?/, '')
  const isPage = text.startsWith('#/') && inside !== ''
  const [path = '', query = ''] = isPage ? inside.split(/\?(.*)/s) : []
  const words = isPage ? path.split('/') : ['chat', inside]
  const [page = '', ...rest] = words.filter(Boolean).map(decoded)
  return { page, rest, query: new URLSearchParams(query) }
}

export const place = computed(() => parse(hash.value))

/** Id of the conversation that is open at a place; undefined for a new one, and on other pages. */
export const conversationAt = ({ page, rest }: Place): string | undefined =>
  page === 'chat' ? rest[0] : undefined

/** The address of a page, from words that are encoded here. Values of the query that are empty are left out. */
export function to(words: string[], query: Record<string, string | undefined> = {}): string {
  const given = Object.entries(query).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '',
  )
  const search = given.length > 0 ? `?${new URLSearchParams(given)}` : ''
  return `#/${words.map(encodeURIComponent).join('/')}${search}`
}

/** The address of a new conversation with something that is not what the tab asks. */
export const toAsk = (what: 'collection' | 'assistant', name: string): string =>
  `./?${what}=${encodeURIComponent(name)}`

export const toConversation = (id: string): string => `#${encodeURIComponent(id)}`

/** Goes to an address that begins with `#`. */
export function go(address: string, { replace = false } = {}): void {
  const target = address === NEW ? location.pathname + location.search : address
  history[replace ? 'replaceState' : 'pushState'](null, '', target)
  hash.value = location.hash
}

const follow = () => {
  hash.value = location.hash
}
addEventListener('popstate', follow)
addEventListener('hashchange', follow)
