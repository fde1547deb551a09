/** Documents as resources: `parley://documents/COLLECTION/ID`. */
import { ApiError } from '../../errors'
import { once } from '../../lib/once'
import { titleOf } from '../../models/extractive/sentences'
import { quoted } from '../../search/filter/print'
import { INVALID_PARAMS, RpcError } from '../http/json-rpc'
import { type FoundDocument, lookUp, requireSearch, wholeText } from '../shared/documents'
import { sourceId } from '../shared/sources'
import type { Session } from './session'

const PAGE = 50
const PREFIX = 'parley://documents/'
/** The number that the specification gives a resource that does not exist. */
const RESOURCE_NOT_FOUND = -32002

export const TEMPLATES = once(() => [
  {
    uriTemplate: `${PREFIX}{collection}/{id}`,
    name: 'document',
    title: 'Document',
    description: 'A document of one of the collections that the assistant searches, as text.',
    mimeType: 'text/plain',
  },
])

const addressOf = (collection: string, id: string): string =>
  `${PREFIX}${encodeURIComponent(collection)}/${encodeURIComponent(id)}`

/**
 * A page of the assistant's documents. The cursor is the number of the next page.
 * @throws ApiError 401 for a key that may ask the assistant, but not search
 */
export async function listResources(
  { env, access, assistant, call: { record } }: Session,
  { cursor }: Record<string, unknown>,
) {
  requireSearch({ access, assistant, record })
  const page = Number(cursor || 1)
  if (!Number.isInteger(page) || page < 1) {
    throw new RpcError(INVALID_PARAMS, '`cursor` must be the `nextCursor` of the page before.')
  }
  const { per_page, limit, page: fixed, offset = fixed } = access.embedded
  const perPage = Math.min(PAGE, Number(per_page ?? limit ?? PAGE) || PAGE)
  const found = await lookUp(env, access, assistant, { perPage, page })
  // Every collection has a page of its own.
  const counts = Map.groupBy(found, ({ collection }) => collection)
  const more = offset === undefined && [...counts.values()].some(({ length }) => length >= perPage)
  return {
    resources: found.map(({ collection, document }) => ({
      uri: addressOf(collection, document.id),
      name: sourceId(collection, document.id),
      title: titleOf(document) || document.id,
      mimeType: 'text/plain',
    })),
    ...(more && { nextCursor: String(page + 1) }),
  }
}

/** @throws RpcError */
export async function readResource(session: Session, { uri }: Record<string, unknown>) {
  if (typeof uri !== 'string') throw new RpcError(INVALID_PARAMS, '`uri` must be a string.')
  const place = placeOf(uri)
  const found = place && (await findDocument(session, place))
  if (!found) throw new RpcError(RESOURCE_NOT_FOUND, `There is no resource \`${uri}\` here.`)
  return { contents: [{ uri, mimeType: 'text/plain', text: textOfDocument(session, found) }] }
}

interface Place {
  collection: string
  id: string
}

function placeOf(uri: string): Place | undefined {
  if (!uri.startsWith(PREFIX)) return undefined
  const [collection, id, ...rest] = uri.slice(PREFIX.length).split('/').map(decoded)
  return collection && id && rest.length === 0 ? { collection, id } : undefined
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return ''
  }
}

/** @param name `COLLECTION/ID`, as `search` gives it. Names of collections have no slash */
export async function fetchDocument(session: Session, name: string) {
  const slash = name.indexOf('/')
  const place = { collection: name.slice(0, Math.max(0, slash)), id: name.slice(slash + 1) }
  const found = slash > 0 ? await findDocument(session, place) : undefined
  if (!found)
    throw new ApiError(404, `There is no document \`${name}\`. Pass an \`id\` that \`search\` gave.`)
  return { ...found, text: textOfDocument(session, found) }
}

async function findDocument(
  { env, access, assistant }: Session,
  { collection, id }: Place,
): Promise<FoundDocument | undefined> {
  const found = await lookUp(env, access, assistant, { filterBy: `id:=${quoted(id)}`, perPage: 1 })
  return found.find((each) => each.collection === collection && each.document.id === id)
}

const textOfDocument = ({ assistant }: Session, { document }: FoundDocument): string =>
  wholeText(document, ['id', assistant.url_field])
