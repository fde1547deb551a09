/**
 * The metadata filters of Vectorize, and its limits: developers.cloudflare.com/vectorize, the pages
 * reference/metadata-filtering and platform/limits.
 */
export const LIMITS = {
  dimensions: 1536,
  upsertVectors: 1_000,
  upsertBytes: 100_000_000,
  deleteIds: 100,
  getIds: 20,
  topK: 100,
  topKWithPayload: 50,
  idBytes: 64,
  namespaceBytes: 64,
  metadataBytes: 10_240,
  filterBytes: 2_048,
  indexedStringBytes: 64,
  metadataIndexes: 10,
  jobVectors: 200_000,
  jobMutations: 1_000,
}

export type Metadata = Record<string, unknown>
export type Filter = Record<string, unknown>

export interface Labelled {
  metadata: Metadata
  /** properties in whose metadata index this vector is: those that had one when it came */
  indexed: ReadonlySet<string>
}

export const bytes = (text: string): number => new TextEncoder().encode(text).byteLength

export const refuse = (kind: string, message: string): never => {
  throw new Error(`VECTOR_${kind}_ERROR: ${message}`)
}

export const isBadKey = (key: string): boolean => key === '' || key.length > 512 || /[."|]|^\$/.test(key)

export const isScalar = (value: unknown): boolean =>
  typeof value === 'string' ||
  typeof value === 'boolean' ||
  (typeof value === 'number' && Number.isFinite(value))

const testsOf = (condition: unknown): Record<string, unknown> =>
  typeof condition === 'object' && condition !== null
    ? (condition as Record<string, unknown>)
    : { $eq: condition }

/** @throws Error for a filter that the documentation does not allow */
export function checkFilter(filter: Filter): void {
  if (Object.keys(filter).length === 0) refuse('QUERY', 'a filter is not empty')
  if (bytes(JSON.stringify(filter)) >= LIMITS.filterBytes) {
    refuse('QUERY', `a filter has less than ${LIMITS.filterBytes} bytes`)
  }
  for (const [property, condition] of Object.entries(filter)) {
    if (isBadKey(property)) refuse('QUERY', `${property} cannot be filtered by`)
    const tests = testsOf(condition)
    const operators = Object.keys(tests)
    const isRange =
      operators.length <= 2 &&
      operators.filter((operator) => /^\$gte?$/.test(operator)).length <= 1 &&
      operators.filter((operator) => /^\$lte?$/.test(operator)).length <= 1 &&
      operators.every((operator) => /^\$[gl]te?$/.test(operator))
    if (operators.length === 0 || (operators.length > 1 && !isRange)) {
      refuse('QUERY', `${operators.join(' and ')} cannot be combined`)
    }
    for (const [operator, operand] of Object.entries(tests)) checkOperand(operator, operand)
  }
}

function checkOperand(operator: string, operand: unknown): void {
  const isValue = (value: unknown): boolean => value === null || isScalar(value)
  const isFit =
    operator === '$in' || operator === '$nin'
      ? Array.isArray(operand) && operand.length > 0 && operand.every(isValue)
      : operator === '$eq' || operator === '$ne'
        ? isValue(operand)
        : isScalar(operand) && typeof operand !== 'boolean'
  if (!isFit) refuse('QUERY', `${operator} does not take ${JSON.stringify(operand)}`)
}

/** Whether a filter finds a vector. */
export function passes({ metadata, indexed }: Labelled, filter: Filter): boolean {
  return Object.entries(filter).every(([property, condition]) => {
    if (!indexed.has(property)) return false
    const raw = metadata[property]
    const value = typeof raw === 'string' ? firstBytes(raw) : raw
    return Object.entries(testsOf(condition)).every(([operator, operand]) =>
      compare(operator, value, operand),
    )
  })
}

/** What a metadata index holds of a string. */
function firstBytes(text: string): string {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(LIMITS.indexedStringBytes))
  return text.slice(0, read)
}

function compare(operator: string, value: unknown, operand: unknown): boolean {
  const [a, b] = [value as number, operand as number]
  const isOrder = /^\$[gl]/.test(operator)
  if (isOrder && typeof value !== typeof operand) return false
  switch (operator) {
    case '$eq':
      return value === operand
    case '$ne':
      return value !== operand
    case '$in':
      return (operand as unknown[]).includes(value)
    case '$nin':
      return !(operand as unknown[]).includes(value)
    case '$lt':
      return a < b
    case '$lte':
      return a <= b
    case '$gt':
      return a > b
    case '$gte':
      return a >= b
    default:
      return refuse('QUERY', `${operator} is no operator`)
  }
}
