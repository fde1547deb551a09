/** Names with stars. */
import { illegalArgument } from './errors'

/** Stars that a name may have: a pattern of many can take very long to be found not to fit. */
const MOST_STARS = 8

/**
 * A name in which `*` stands for anything, as a regular expression.
 * @param tail of the expression, after the name
 * @throws ApiError 400
 */
export function starPattern(text: string, tail = ''): RegExp {
  const parts = text.split(/\*+/).map((part) => part.replace(/[\\^$.+?()[\]{}|]/g, '\\$&'))
  if (parts.length > MOST_STARS + 1)
    throw illegalArgument(`A name takes at most ${MOST_STARS} stars: [${text}]`)
  return new RegExp(`^${parts.join('.*')}${tail}$`, 's')
}
