/** Random documents and filters, and an evaluation of filters that reads the documents, to hold searches against. */
import fc from 'fast-check'
import type { FilterClause, FilterNode, FilterValue } from '../../../src/search/filter/parse'

// Words that the index confuses: forms of one stem, accents, case, and signs that are no words.
export const VOCABULARY = [
  'run',
  'Running',
  'runs',
  'runner',
  'élan',
  'Elan',
  'university',
  'universe',
  'C++',
  'c',
  'a-b',
]

export const FIELDS = [
  { name: 'genre', type: 'string', facet: true, optional: true },
  { name: 'tags', type: 'string[]', facet: true, optional: true },
  { name: 'title', type: 'string', optional: true },
  { name: 'notes', type: 'string[]', optional: true },
  { name: 'hidden', type: 'string', optional: true, store: false },
  { name: 'year', type: 'int32', optional: true },
  { name: 'sizes', type: 'int32[]', optional: true },
  { name: 'price', type: 'float', optional: true },
  { name: 'stock', type: 'bool', optional: true },
  { name: 'person', type: 'object', optional: true },
  { name: 'person.name', type: 'string', facet: true, optional: true },
  { name: 'places', type: 'object[]', optional: true },
  { name: 'places.city', type: 'string[]', optional: true },
  { name: 'places.size', type: 'int32[]', optional: true },
]

export type Doc = Record<string, unknown> & { id: string }

export const words = fc
  .array(fc.constantFrom(...VOCABULARY), { minLength: 1, maxLength: 4 })
  .map((some) => some.join(' '))

const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 3 })

export const document = fc.record({
  genre: optional(words),
  tags: optional(fc.array(words, { maxLength: 3 })),
  title: optional(words),
  notes: optional(fc.array(words, { maxLength: 3 })),
  hidden: optional(words),
  year: optional(fc.integer({ min: -3, max: 8 })),
  sizes: optional(fc.array(fc.integer({ min: -3, max: 8 }), { maxLength: 3 })),
  price: optional(fc.constantFrom(0, 0.5, 1.25, -2.5, 7)),
  stock: optional(fc.boolean()),
  person: optional(fc.record({ name: words })),
  places: optional(
    fc.array(fc.record({ city: words, size: fc.integer({ min: -3, max: 8 }) }, { requiredKeys: ['city'] }), {
      maxLength: 3,
    }),
  ),
})

// The evaluation that the compiler is held against: straight from the grammar's description.

export const tokensOf = (text: string): string[] =>
  text
    .normalize('NFD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((token) => token !== '')

export function valuesOf(doc: Doc, path: string): unknown[] {
  let values: unknown[] = [doc]
  for (const part of path.split('.')) {
    values = values.flatMap((value) => (value as Record<string, unknown>)?.[part] ?? [])
  }
  return values
}

function stringMatches(value: string, { text, quoted, phrase }: FilterValue, whole: boolean): boolean {
  if (phrase) {
    const words = tokensOf(text)
    return words.length > 0 && ` ${tokensOf(value).join(' ')} `.includes(` ${words.join(' ')} `)
  }
  const prefix = !quoted && text.endsWith('*')
  const wanted = tokensOf(text)
  const has = tokensOf(value)
  if (whole) {
    return prefix && wanted.length > 0
      ? has.join(' ').startsWith(wanted.join(' '))
      : has.join(' ') === wanted.join(' ')
  }
  if (wanted.length === 0) return false
  return wanted.every((token, index) =>
    prefix && index === wanted.length - 1 ? has.some((each) => each.startsWith(token)) : has.includes(token),
  )
}

function numberMatches(value: number, text: string): boolean {
  const range = /^(.+)\.\.(.+)$/.exec(text)
  if (range) return value >= Number(range[1]) && value <= Number(range[2])
  const compared = /^(>=|<=|>|<)(.+)$/.exec(text)
  if (!compared) return value === Number(text)
  const bound = Number(compared[2])
  return { '>': value > bound, '>=': value >= bound, '<': value < bound, '<=': value <= bound }[compared[1]!]!
}

function clauseMatches(doc: Doc, { field, operator, list, values }: FilterClause): boolean {
  const negated = operator === ':!=' || operator === ':!'
  const whole = operator === ':=' || operator === ':!=' || (list && values.some(({ phrase }) => phrase))
  const present = valuesOf(doc, field)
  const found = values.some((wanted) => {
    const { text } = wanted
    if (text.startsWith('!=')) return !present.includes(Number(text.slice(2)))
    return present.some((value) => {
      if (field === 'id') return value === text
      if (typeof value === 'string') return stringMatches(value, wanted, whole)
      return typeof value === 'number' ? numberMatches(value, text) : String(value) === text
    })
  })
  return found !== negated
}

export const matches = (doc: Doc, node: FilterNode): boolean => {
  if (node.kind === 'clause') return clauseMatches(doc, node)
  if (node.kind === 'join') throw new Error('these filters have no joins')
  if (node.kind === 'object') {
    const objects = valuesOf(doc, node.field).flat() as Doc[]
    return objects.some((object) => matches(object, node.child))
  }
  return node.kind === 'and'
    ? node.children.every((child) => matches(doc, child))
    : node.children.some((child) => matches(doc, child))
}

const value = (text: fc.Arbitrary<string>) => text.map((each) => ({ text: each, quoted: false }))

const stringValue = fc.oneof(
  value(words),
  value(fc.constantFrom('r*', 'run*', 'runn*', 'univers*', 'universi*', 'c a*', 'e*', 'run univ*')),
  words.map((text) => ({ text, quoted: true })),
  words.map((text) => ({ text: `"${text}"`, quoted: false, phrase: true as const })),
)
const integer = fc.integer({ min: -3, max: 8 }).map(String)
const integerValue = value(
  fc.oneof(
    integer,
    fc.tuple(fc.constantFrom('>', '>=', '<', '<='), integer).map(([sign, bound]) => sign + bound),
    fc.tuple(integer, integer).map(([from, to]) => `${from}..${to}`),
  ),
)

const clausesOn = (fields: string[], some: fc.Arbitrary<FilterValue>, inLists = some) =>
  fc
    .record({
      field: fc.constantFrom(...fields),
      operator: fc.constantFrom(':' as const, ':=' as const, ':!=' as const, ':!' as const),
      list: fc.boolean(),
      one: some,
      values: fc.array(inLists, { maxLength: 3 }),
    })
    .map(
      ({ list, one, values, ...rest }): FilterNode => ({
        kind: 'clause',
        ...rest,
        list,
        values: list ? values : [one],
      }),
    )

export const anyClause = fc.oneof(
  clausesOn(['genre', 'tags', 'title', 'notes', 'hidden', 'person.name', 'places.city'], stringValue),
  clausesOn(
    ['year', 'sizes'],
    integerValue,
    fc.oneof(integerValue, value(integer.map((each) => `!=${each}`))),
  ),
  clausesOn(['price'], value(fc.constantFrom('0', '0.5', '>0.5', '<=1.25', '-3..1', '-2.5'))),
  clausesOn(['stock'], value(fc.constantFrom('true', 'false'))),
  clausesOn(['id'], value(fc.constantFrom('0', '1', '7', 'none'))),
)

const treeOf = (leaf: fc.Arbitrary<FilterNode>) =>
  fc.letrec<{ node: FilterNode }>((tie) => ({
    node: fc.oneof(
      { maxDepth: 3 },
      leaf,
      fc
        .record({
          kind: fc.constantFrom('and' as const, 'or' as const),
          children: fc.array(tie('node'), { minLength: 2, maxLength: 4 }),
        })
        .filter(({ kind, children }) => children[0]?.kind !== kind),
    ),
  })).node

const objectFilter = treeOf(
  fc.oneof(clausesOn(['city'], stringValue), clausesOn(['size'], integerValue)),
).map((child): FilterNode => ({ kind: 'object', field: 'places', child }))

export const filter = treeOf(fc.oneof({ arbitrary: anyClause, weight: 4 }, objectFilter))

export const documents: Doc[] = fc
  .sample(document, { numRuns: 60, seed: 20 })
  .map((doc, index) => ({ ...doc, id: String(index) }))

/** Compares numbers by value, texts by code units. */
export const byValue = (a: unknown, b: unknown) => (a === b ? 0 : (a as string) < (b as string) ? -1 : 1)
/** Compares values of a facet that are equal otherwise. */
export const byTie = (a: unknown, b: unknown) =>
  typeof a === 'string' && typeof b === 'string' ? a.length - b.length || byValue(b, a) : byValue(a, b)
export const folded = (value: unknown) => (typeof value === 'string' ? value.toLowerCase() : value)

/** A document's group. Without `group_by` it is the document's own. */
export function groupOf(
  doc: Doc,
  { group, groupsMissing }: { group: string[]; groupsMissing: boolean },
): { name: string; key: unknown[] } {
  const values = group.map((field) => {
    const value = doc[field]
    return Array.isArray(value) && value.length === 0 ? undefined : value
  })
  const isAlone = group.length === 0 || (!groupsMissing && values.includes(undefined))
  return {
    name: isAlone ? doc.id : JSON.stringify(values.map((value) => value ?? null)),
    key: isAlone ? [] : values.filter((value) => value !== undefined),
  }
}
