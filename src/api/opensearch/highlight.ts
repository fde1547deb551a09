/** `highlight`: as parameters of the search, and as hits show it. */
import type { Hit, SearchParameters } from '../../search/types'
import { illegalArgument, parsingError, unsupported } from './errors'
import type { Fields } from './fields'
import { isObject, type Json } from './route'
import { shownName } from './source'

/** Characters of a word and the blank behind it, more or less. */
const LETTERS = 6

/** @throws ApiError 400 that names what is unknown */
export function highlightParameters(given: unknown, fields: Fields): SearchParameters {
  if (given === undefined) return { highlight_fields: 'none' }
  if (!isObject(given)) throw parsingError('[highlight] has to be an object')
  // How fragments are found, which is one way here.
  const {
    fields: named,
    pre_tags,
    post_tags,
    type: _,
    encoder: __,
    number_of_fragments,
    fragment_size,
    ...others
  } = given
  const unknown = Object.keys(others)[0]
  if (unknown !== undefined) throw unsupported(`[${unknown}] of [highlight]`)
  const entries = (Array.isArray(named) ? named : [named]).flatMap((each) =>
    isObject(each) ? Object.entries(each) : [],
  )
  if (entries.length === 0) throw parsingError('[highlight] takes an object of [fields]')
  const names: string[] = []
  const whole: string[] = []
  const sizes = new Set<unknown>()
  for (const [name, options] of entries) {
    const own = isObject(options) ? options : {}
    const strange = Object.keys(own).find(
      (key) => !['number_of_fragments', 'fragment_size', 'type'].includes(key),
    )
    if (strange !== undefined) throw unsupported(`[${strange}] of a field of [highlight]`)
    const fragments = own.number_of_fragments ?? number_of_fragments
    const targets = fields.matching(name).filter(({ kind }) => kind === 'text')
    names.push(...targets.map((target) => target.name))
    // 0 means the whole value. Otherwise it is the most fragments, and there is one of each value.
    if (fragments === 0) whole.push(...targets.map((target) => target.name))
    sizes.add(own.fragment_size ?? fragment_size)
  }
  if (sizes.size > 1) throw unsupported('A [fragment_size] of [highlight] for each field')
  const [size = 100] = sizes
  if (!Number.isInteger(size) || (size as number) < 1)
    throw illegalArgument('[fragment_size] takes a number of characters')
  return {
    highlight_fields: names.join(',') || 'none',
    highlight_full_fields: whole.join(',') || 'none',
    // Half of the words before the match, and half behind it.
    highlight_affix_num_tokens: String(Math.max(1, Math.round((size as number) / (2 * LETTERS)))),
    highlight_start_tag: tag('pre_tags', pre_tags, '<em>'),
    highlight_end_tag: tag('post_tags', post_tags, '</em>'),
  }
}

function tag(name: string, given: unknown, otherwise: string): string {
  const [first = otherwise, ...others] = Array.isArray(given) ? given : given === undefined ? [] : [given]
  if (typeof first !== 'string' || others.length > 0) throw unsupported(`[${name}] of more than one text`)
  return first
}

/** A hit's highlights: a list of texts for each field. */
export function highlightOf({ highlights }: Hit): Json | undefined {
  if (highlights.length === 0) return undefined
  return Object.fromEntries(
    highlights.map(({ field, value, values, snippet, snippets }) => [
      shownName(field),
      values ?? (value === undefined ? (snippets ?? [snippet]) : [value]),
    ]),
  )
}
