/**
 * GET /content/{citation}: the text of a document that an answer cites, for whoever may ask the assistant about it.
 * A citation of a file's page leads to that page, the file's name alone to all its pages.
 */

import { ApiError } from '../../errors'
import { regExp } from '../../once'
import { DEFAULT_ASSISTANT } from '../../registry/assistants'
import type { Document, SearchParameters } from '../../search/types'
import { labelOf, meaningOf } from '../../turn/labels'
import { hitsOf } from '../../turn/retrieve'
import { admitAsker, openAssistant } from '../assistants/open'
import { planRetrieval } from '../assistants/plan'
import { runSearches } from '../edge/plan'
import { type ChatCall, refuse } from './chat'
import { textsOf } from './context'

/** Documents of one citation: the pages of a file. */
const MOST_PAGES = 250
const LONGEST_LABEL = 1_000

const HEADERS = {
  'content-type': 'text/plain; charset=utf-8',
  // The text is not ours: nothing in it may run, whatever a browser takes it for.
  'content-security-policy': "default-src 'none'; sandbox; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
}

/** @param label the citation, url-decoded once. Never throws. */
export async function content(call: ChatCall, label: string): Promise<Response> {
  try {
    const texts = await textsBehind(call, label)
    if (texts.length === 0) throw new ApiError(404, 'There is no such document.')
    return new Response(texts.join('\n\n'), { headers: HEADERS })
  } catch (error) {
    return refuse(call, error)
  }
}

async function textsBehind({ env, request, record, path }: ChatCall, label: string): Promise<string[]> {
  const access = await admitAsker(env, request, record)
  const assistant = await openAssistant(env, access, path.assistant ?? DEFAULT_ASSISTANT, record)
  if (label.length > LONGEST_LABEL) return []
  const { citation_field: field, url_field: urlField } = assistant
  const labelling = field === undefined ? {} : { field }
  // Front ends show where in a document they found something behind its name.
  const wanted = label.replace(/ \([^()]*\)$/, '')
  for (const { filter, isMeant } of lookUps(wanted, field)) {
    const planned = await planRetrieval(env, access, assistant, { filterBy: filter })
    const replies = await runSearches(
      env,
      planned.map(({ search }) => ({ ...search, params: asLookUp(search.params) })),
    )
    const found = replies
      .flatMap((reply) => ('result' in reply ? hitsOf(reply.result) : []))
      .map(({ document }) => ({ document, name: labelOf(document, labelling) }))
      .filter(({ document, name }) => isMeant(document, name))
      .sort((a, b) => (a.name ?? '').localeCompare(b.name ?? '', 'en', { numeric: true }))
    if (found.length > 0) return found.map(({ document }) => wholeText(document, ['id', field, urlField]))
  }
  return []
}

/** A document's texts below each other, as they are: line breaks may be code, or a poem. */
const wholeText = (document: Document, hidden: readonly (string | undefined)[]): string =>
  textsOf(document, hidden)
    .map((text) => text.trim())
    .filter((text) => text !== '')
    .join('\n')

interface LookUp {
  filter: string
  /** comparisons in filters are broader than names: only what is meant is shown */
  isMeant(document: Document, name: string | undefined): boolean
}

const NO_WORD = regExp(String.raw`[^\p{L}\p{N}\p{M}]+`, 'gu')

/** Where a label may lead, the likeliest first. */
function lookUps(label: string, field: string | undefined): LookUp[] {
  const { ids, names } = meaningOf(label)
  const byId = ids.map((id) => ({
    filter: `id:=${quoted(id)}`,
    isMeant: (document: Document) => document.id === id,
  }))
  if (field === undefined) return byId
  const byName = names.flatMap((text) => {
    const bare = text.replace(NO_WORD(), ' ').trim()
    if (bare === '') return []
    const own = labelOf({ [field]: text }, { field })
    return [
      { filter: `${field}:=${quoted(text)}`, isMeant: (_: Document, name?: string) => name === own },
      {
        filter: `${field}:=${bare}*`,
        isMeant: (_: Document, name?: string) => name?.startsWith(`${own}#`) === true,
      },
    ]
  })
  return [...byName, ...byId]
}

const quoted = (value: string): string => `\`${value.replaceAll('`', ' ')}\``

/** Parameters of a search that only its filters and the fields that it shows are kept of. */
function asLookUp({
  filter_by,
  query_by,
  include_fields,
  exclude_fields,
}: SearchParameters): SearchParameters {
  return {
    q: '*',
    per_page: String(MOST_PAGES),
    ...(query_by !== undefined && { query_by }),
    ...(filter_by !== undefined && { filter_by }),
    ...(include_fields !== undefined && { include_fields }),
    ...(exclude_fields !== undefined && { exclude_fields }),
  }
}
