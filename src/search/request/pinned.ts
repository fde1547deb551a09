/** The grammar of pinned_hits: `id:position, id:position`. */
import { ApiError } from '../../errors'
import { list } from './parameters'

export interface PinnedHit {
  id: string
  /** 1 is the first */
  position: number
}

/** @throws ApiError 400 */
export function parsePinned(text: string): PinnedHit[] {
  return list(text).map((pin) => {
    const match = /^(.+):(\d+)$/.exec(pin)
    if (!match || Number(match[2]) < 1) {
      throw new ApiError(400, 'Pinned hits are not in expected format.')
    }
    return { id: match[1]!.trim(), position: Number(match[2]) }
  })
}
