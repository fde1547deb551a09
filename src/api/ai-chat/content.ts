/**
 * GET /content/{citation}: the text of a cited document, for everybody who may ask the assistant. The citation of a page shows
 * that page; the name of a file shows all its pages.
 */

import { ApiError } from '../../errors'
import { regExp } from '../../lib/once'
import { DEFAULT_ASSISTANT } from '../../registry/assistants'
import { quoted } from '../../search/filter/parse'
import type { Document } from '../../search/types'
import { labelOf, meaningOf } from '../../turn/passage'
import { admitAsker, openAssistant } from '../http/chat-names'
import type { OpenCall } from '../http/router'
import { lookUp, wholeText } from '../shared/sources'

/** Documents of one citation: the pages of a file. */
const MOST_PAGES = 250
const LONGEST_LABEL = 1_000

const HEADERS = {
  'content-type': 'text/plain; charset=utf-8',
  // The text comes from others. Nothing in it may run, whatever type a browser guesses.
  'content-security-policy': "default-src 'none'; sandbox; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
}

/** The label of the path is the citation, url-decoded once. @throws ApiError */
export async function content(call: OpenCall): Promise<Response> {
  const texts = await textsBehind(call)
  if (texts.length === 0) throw new ApiError(404, 'There is no such document.')
  return new Response(texts.join('\n\n'), { headers: HEADERS })
}

async function textsBehind(call: OpenCall): Promise<string[]> {
  const { label = '' } = call.path
  const access = await admitAsker(call)
  const assistant = await openAssistant(call, access, call.path.assistant ?? DEFAULT_ASSISTANT)
  if (label.length > LONGEST_LABEL) return []
  const { citation_field: field, url_field: urlField } = assistant
  const labelling = field === undefined ? {} : { field }
  // Front ends append the place within the document to the name.
  const wanted = label.replace(/ \([^()]*\)$/, '')
  for (const { filter, isMeant } of meaningsOf(wanted, field)) {
    const documents = await lookUp(call.env, access, assistant, { filterBy: filter, perPage: MOST_PAGES })
    const found = documents
      .map(({ document }) => ({ document, name: labelOf(document, labelling) }))
      .filter(({ document, name }) => isMeant(document, name))
      .sort((a, b) => (a.name ?? '').localeCompare(b.name ?? '', 'en', { numeric: true }))
    if (found.length > 0) return found.map(({ document }) => wholeText(document, ['id', field, urlField]))
  }
  return []
}

interface Meaning {
  filter: string
  /** checks each document, because a filter matches more than the exact name */
  isMeant(document: Document, name: string | undefined): boolean
}

const NO_WORD = regExp(String.raw`[^\p{L}\p{N}\p{M}]+`, 'gu')

/** The possible meanings of a label, the likeliest first. */
function meaningsOf(label: string, field: string | undefined): Meaning[] {
  const { ids, names } = meaningOf(label)
  const byId = ids.map((id) => ({
    filter: `id:=${quoted(id)}`,
    isMeant: (document: Document) => document.id === id,
  }))
  if (field === undefined) return byId
  const byName = names.flatMap((text) => {
    if (text.replace(NO_WORD(), '') === '') return []
    const own = labelOf({ [field]: text }, { field })
    return [
      { filter: `${field}:=${quoted(text)}`, isMeant: (_: Document, name?: string) => name === own },
      {
        filter: `${field}:=${quoted(text)}*`,
        isMeant: (_: Document, name?: string) => name?.startsWith(`${own}#`) === true,
      },
    ]
  })
  return [...byName, ...byId]
}
