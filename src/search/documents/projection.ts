/** include_fields and exclude_fields: selects the parts of a document that a reply contains. */
import { splitOutside } from '../fragment'
import type { Document } from '../types'

type Json = Record<string, unknown>

/** Field patterns as a tree of names: `a.b` is `b` below `a`. */
interface Selection {
  /** everything below this name is selected */
  whole: boolean
  children: Map<string, Selection>
  /** `pre*`: names with this prefix are selected */
  prefixes: string[]
}

/**
 * Projects a document.
 * @param include comma-separated names, dotted names and `prefix*`; '' for all
 * @param exclude the same, removed afterwards
 */
export function project(document: Document, include: string, exclude: string): Document {
  const included = parseSelection(include)
  const excluded = parseSelection(exclude)
  let projected: Json = document
  if (included !== undefined) projected = (keep(projected, included, '') ?? {}) as Json
  if (excluded !== undefined) projected = drop(projected, excluded, '') as Json
  return projected as Document
}

/** Whether any part of a top-level field is selected. If not, an expensive field need not be read. */
export function isProjected(name: string, include: string, exclude: string): boolean {
  return name in project({ id: '', [name]: true } as Document, include, exclude)
}

/** Whether `exclude`, as `project` takes it, covers a whole field. */
export const isExcluded = (field: string, exclude: string): boolean =>
  splitOutside(exclude, ',').some((name) =>
    name.endsWith('*') ? field.startsWith(name.slice(0, -1)) : field === name || field.startsWith(`${name}.`),
  )

const isJoin = (name: string): boolean => name.startsWith('$') && name.includes('(')

function parseSelection(list: string): Selection | undefined {
  // `$other(...)` is a join, with commas of its own. run/join-attach.ts reads it.
  const names = (
    list.includes('$') ? splitOutside(list, ',').filter((name) => !isJoin(name)) : list.split(',')
  )
    .map((name) => name.trim())
    .filter((name) => name !== '')
  if (names.length === 0) return undefined
  const root = emptySelection()
  for (const name of names) {
    if (name.endsWith('*')) {
      root.prefixes.push(name.slice(0, -1))
      continue
    }
    // A key can also contain dots itself.
    child(root, name).whole = true
    const parts = name.split('.')
    if (parts.length > 1) parts.reduce(child, root).whole = true
  }
  return root
}

const emptySelection = (): Selection => ({ whole: false, children: new Map(), prefixes: [] })

function child(selection: Selection, name: string): Selection {
  const known = selection.children.get(name) ?? emptySelection()
  selection.children.set(name, known)
  return known
}

const isJson = (value: unknown): value is Json => typeof value === 'object' && value !== null

/** The selected part of a value, undefined for nothing. @param path the dotted name of `value`, with a dot */
function keep(value: unknown, selection: Selection, path: string): unknown {
  if (Array.isArray(value)) {
    const kept = value.map((element) => keep(element, selection, path)).filter((each) => each !== undefined)
    return kept.length > 0 ? kept : undefined
  }
  if (!isJson(value)) return undefined
  const kept: Json = {}
  for (const [name, inner] of Object.entries(value)) {
    const chosen = selection.children.get(name)
    if (chosen?.whole || selection.prefixes.some((prefix) => `${path}${name}`.startsWith(prefix))) {
      kept[name] = inner
      continue
    }
    const below = { ...(chosen ?? emptySelection()), prefixes: selection.prefixes }
    if (below.children.size === 0 && !reaches(below.prefixes, `${path}${name}.`)) continue
    const part = keep(inner, below, `${path}${name}.`)
    if (part !== undefined) kept[name] = part
  }
  return Object.keys(kept).length > 0 || path === '' ? kept : undefined
}

const reaches = (prefixes: string[], path: string): boolean =>
  prefixes.some((prefix) => prefix.startsWith(path))

const isEmptied = (before: unknown, after: unknown): boolean =>
  before !== after &&
  isJson(after) &&
  !Array.isArray(after) &&
  Object.keys(after).length === 0 &&
  Object.keys(before as Json).length > 0

function drop(value: unknown, selection: Selection, path: string): unknown {
  if (Array.isArray(value)) return value.map((element) => drop(element, selection, path))
  if (!isJson(value)) return value
  const kept: Json = {}
  for (const [name, inner] of Object.entries(value)) {
    const chosen = selection.children.get(name)
    if (chosen?.whole || selection.prefixes.some((prefix) => `${path}${name}`.startsWith(prefix))) continue
    const below = { ...(chosen ?? emptySelection()), prefixes: selection.prefixes }
    const touched = below.children.size > 0 || reaches(below.prefixes, `${path}${name}.`)
    const left = touched ? drop(inner, below, `${path}${name}.`) : inner
    // As in Typesense, an object goes with the last of its fields. Objects of a list stay, so that places do not shift.
    if (isEmptied(inner, left)) continue
    kept[name] = left
  }
  return kept
}
