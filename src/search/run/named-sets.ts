/** The synonym sets and curation sets of a search: those that the collection names, and those that the search names. */
import { ApiError, detailed } from '../../errors'
import { checkLimits } from '../limits'
import { list, parameter } from '../request/parameters'
import { parseRequest, type SearchRequest } from '../request/request'
import type { Curation, Diversity } from '../sets/curation'
import type { Synonym } from '../sets/synonym'
import type { TokenRules } from '../text/analyzer'
import { analyzerOf, type TextIndex, WORDS } from '../text/analyzer'
import { rulesOf } from '../text/rules'
import { SynonymIndex, type SynonymRules } from '../text/synonyms'
import type { SearchParameters } from '../types'
import type { SearchContext } from './context'
import { curate } from './curate'
import type { Pacing } from './pace'

export interface NamedSets {
  synonyms: (readonly Synonym[])[]
  curations: Curation[]
  /** stemming dictionaries that rules of curations name */
  dictionaries: Map<string, ReadonlyMap<string, string>>
}

const NONE: NamedSets = { synonyms: [], curations: [], dictionaries: new Map() }

const MOST_TYPOS = 2

/**
 * Reads the sets of a search. A set that the collection names and that was deleted since is left out: it would take
 * all searches with it.
 * @throws ApiError 404 for a set that the search names
 */
export async function readNamedSets(context: SearchContext, params: SearchParameters): Promise<NamedSets> {
  const { schema } = context
  const synonyms = parameter(params, 'enable_synonyms')
    ? namesOf(schema.synonym_sets, params.synonym_sets)
    : []
  const withCurations = parameter(params, 'enable_curations') && parameter(params, 'enable_overrides')
  const curations = withCurations ? namesOf(schema.curation_sets, params.curation_sets) : []
  if (synonyms.length === 0 && curations.length === 0) return NONE
  const [foundSynonyms, foundCurations] = await Promise.all([
    Promise.all(synonyms.map((set) => required(set, 'Synonym', context.synonymSet(set.name)))),
    Promise.all(curations.map((set) => required(set, 'Curation', context.curationSet(set.name)))),
  ])
  const rules = foundCurations.flatMap((set) => set ?? [])
  return {
    synonyms: foundSynonyms.filter((set) => set !== undefined),
    curations: rules,
    dictionaries: await dictionariesOf(context, rules),
  }
}

async function dictionariesOf(
  context: SearchContext,
  curations: Curation[],
): Promise<NamedSets['dictionaries']> {
  const names = new Set(curations.flatMap(({ rule }) => rule.stemming_dictionary ?? []))
  const found = await Promise.all(
    [...names].map(async (name) => [name, await context.stemmingDictionary(name)] as const),
  )
  return new Map(found.flatMap(([name, words]) => (words === undefined ? [] : [[name, words]])))
}

interface Named {
  name: string
  asked: boolean
}

function namesOf(own: readonly string[] = [], asked: string | undefined): Named[] {
  if (own.length === 0 && !asked) return []
  const names = list(asked).map((name) => name.trim())
  return [...new Set([...own, ...names])].map((name) => ({ name, asked: names.includes(name) }))
}

async function required<Found>(
  { name, asked }: Named,
  what: string,
  finding: Promise<Found | undefined>,
): Promise<Found | undefined> {
  const found = await finding
  if (found === undefined && asked) {
    throw detailed(404, `${what} index not found`, `There is no set named \`${name}\`.`)
  }
  return found
}

/** A search as its sets change it. */
export interface WithSets {
  /** with what curations put in */
  params: SearchParameters
  request: SearchRequest
  /** of the first curation that has some */
  metadata: Record<string, unknown> | undefined
  diversity: Diversity | undefined
}

/** @throws ApiError for wrong parameters */
export async function applyNamedSets(
  context: SearchContext,
  given: SearchParameters,
  sets: NamedSets,
  preparing: Pacing,
): Promise<WithSets> {
  if (sets === NONE)
    return {
      params: given,
      request: parseRequest(given, context.schema),
      metadata: undefined,
      diversity: undefined,
    }
  checkLimits(given)
  const { schema } = context
  const synonyms = synonymRules(given, sets.synonyms)
  const lists = { synonyms: synonyms?.(WORDS, schema, ''), dictionaries: sets.dictionaries }
  const curated = await preparing((pace) => curate(context, given, sets.curations, lists, pace))
  const { params, pins, hidden, filtersPins, metadata, diversity } = curated
  const request = parseRequest(params, schema)
  const pinned = new Set(request.pinnedHits.map(({ id }) => id))
  for (const pin of pins) {
    if (!pinned.has(pin.id)) request.pinnedHits.push(pin)
    pinned.add(pin.id)
  }
  request.hiddenHits.push(...hidden)
  request.filterPinned ||= filtersPins
  if (synonyms !== undefined) {
    const field = request.queryFields[0]?.field
    request.synonyms = synonyms(request.index, rulesOf(schema, field), field?.locale ?? '')
  }
  return { params, request, metadata, diversity }
}

type Rules = (index: TextIndex, tokens: TokenRules, locale: string) => SynonymRules

/** @throws ApiError 400 */
function synonymRules(params: SearchParameters, sets: NamedSets['synonyms']): Rules | undefined {
  const typos = Number(params.synonym_num_typos || 0)
  if (!Number.isInteger(typos) || typos < 0) {
    throw new ApiError(400, 'Parameter `synonym_num_typos` must be an unsigned integer.')
  }
  if (typos > MOST_TYPOS) {
    throw new ApiError(400, `Value of \`synonym_num_typos\` must not be greater than ${MOST_TYPOS}.`)
  }
  if (sets.length === 0) return undefined
  return (index, tokens, locale) => ({
    indexes: sets.map((set) => indexOf(set, index, tokens)),
    form: analyzerOf(index, tokens).form,
    locale,
    prefix: parameter(params, 'synonym_prefix'),
    typos,
    demotes: parameter(params, 'demote_synonym_match'),
  })
}

/** The indexes of sets, by the rules of the collections that use them. A set that changes is another object. */
const indexes = new WeakMap<readonly Synonym[], Map<string, SynonymIndex>>()

function indexOf(set: readonly Synonym[], index: TextIndex, tokens: TokenRules): SynonymIndex {
  const byRules = indexes.get(set) ?? new Map<string, SynonymIndex>()
  indexes.set(set, byRules)
  const { token_separators, symbols_to_index, truncate_len, stem } = tokens
  const rules: TokenRules = {
    token_separators,
    symbols_to_index,
    ...(truncate_len !== undefined && { truncate_len }),
    ...(stem !== undefined && { stem }),
  }
  const key = JSON.stringify([index.table, rules])
  const known = byRules.get(key)
  if (known !== undefined) return known
  const made = new SynonymIndex(set, (symbols) =>
    analyzerOf(
      index,
      symbols.length === 0
        ? tokens
        : { ...rules, symbols_to_index: [...new Set([...symbols_to_index, ...symbols])] },
    ),
  )
  byRules.set(key, made)
  return made
}
