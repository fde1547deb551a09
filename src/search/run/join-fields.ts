/** Joins in include_fields and exclude_fields: `$collection(fields, strategy: nest, limit: 5) as name`. */
import { ApiError } from '../../errors'
import { readJoin } from '../filter/parse'
import { splitOutside } from '../fragment'

export interface JoinInclude {
  collection: string
  /** fields of the other collection, with joins of its own; '' for all */
  fields: string
  strategy: 'nest' | 'nest_array' | 'merge'
  /** the name in the document; '' for the name of the collection */
  alias: string
  /** the name of the field with the number of related documents; '' for none */
  count: string
  sortBy: string
  /** 0: no limit */
  limit: number
}

interface Named {
  collection: string
  inside: string
  alias: string
}

/** @throws ApiError 400 */
function joinsIn(list: string): Named[] {
  if (!list.includes('$')) return []
  return splitOutside(list, ',')
    .filter((part) => part.startsWith('$'))
    .map((part) => {
      const join = readJoin(part)
      const alias = join && /^(?:\s+as\s+(\S+))?$/.exec(part.slice(join.end))
      if (join === undefined || !alias) {
        throw new ApiError(
          400,
          `Invalid reference \`${part}\` in include_fields/exclude_fields, expected \`$CollectionName(fieldA, ...)\`.`,
        )
      }
      return { collection: join.collection, inside: join.inside, alias: alias[1] ?? '' }
    })
}

/** @throws ApiError 400 with Typesense's messages */
export const includesIn = (list: string): JoinInclude[] => joinsIn(list).map(readInclude)

/**
 * The fields of a joined collection that exclude_fields leaves out, in the same list syntax. Several parts add up.
 * @param isCalled whether a name is the collection's: it may have aliases @throws ApiError 400
 */
export const excludesIn = (list: string, isCalled: (name: string) => boolean): string =>
  joinsIn(list)
    .filter(({ collection }) => isCalled(collection))
    .map(({ inside }) => inside)
    .join(',')

function readInclude({ collection, inside, alias }: Named): JoinInclude {
  const include: JoinInclude = {
    collection,
    fields: '',
    strategy: 'nest',
    alias,
    count: '',
    sortBy: '',
    limit: 0,
  }
  const fields: string[] = []
  for (const part of splitOutside(inside, ',')) {
    const option = part.startsWith('$') ? null : /^([^:]+):(.*)$/s.exec(part)
    if (option) readOption(include, option[1]!.trim(), option[2]!.trim(), inside)
    else if (part !== '') fields.push(part)
  }
  // A list that names only joins shows all fields, as in the outer list.
  include.fields = fields.join(', ')
  return include
}

function readOption(include: JoinInclude, name: string, value: string, inside: string): void {
  switch (name) {
    case 'strategy':
      if (value !== 'nest' && value !== 'nest_array' && value !== 'merge') {
        const { collection, alias } = include
        throw new ApiError(
          400,
          `Error parsing \`$${collection}(${inside})${alias && ` as ${alias}`}\`: Unknown include strategy \`${value}\`. Valid options are \`merge\`, \`nest\`, \`nest_array\`.`,
        )
      }
      include.strategy = value
      return
    case 'related_docs_count':
      include.count = value
      return
    case 'limit':
      if (!/^\d{1,9}$/.test(value))
        throw new ApiError(400, 'The `limit` of a join must be an unsigned integer.')
      include.limit = Number(value)
      return
    case 'sort_by':
      include.sortBy = value
      return
  }
  // Further keys of the order follow behind commas.
  if (include.sortBy === '' || !/(^|:)\s*(asc|desc)$/i.test(value)) {
    throw new ApiError(400, `Unknown reference \`include_fields\` parameter: \`${name}\`.`)
  }
  include.sortBy += `, ${name}:${value}`
}
