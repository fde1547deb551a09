/** Names with stars. */
import { illegalArgument } from './errors'

/** Most stars in a name: a pattern with many can take very long to fail. */
const MOST_STARS = 8

/**
 * A name as a regular expression; `*` matches anything.
 * @param tail of the expression, after the name
 * @throws ApiError 400
 */
export function starPattern(text: string, tail = ''): RegExp {
  const parts = text.split(/\*+/).map((part) => part.replace(/[\\^$.+?()[\]{}|]/g, '\\$&'))
  if (parts.length > MOST_STARS + 1)
    throw illegalArgument(`A name takes at most ${MOST_STARS} stars: [${text}]`)
  return new RegExp(`^${parts.join('.*')}${tail}$`, 's')
}
