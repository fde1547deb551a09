/** `pinned_hits`: documents and their positions. */
import { ApiError } from '../../errors'
import { splitOutside } from '../fragment'

/** @throws ApiError 400 */
export function parsePinned(text: string): { id: string; position: number }[] {
  const pins = splitOutside(text, ',').filter((pin) => pin !== '')
  return pins.map((pin) => {
    const match = /^(.+):(\d+)$/.exec(pin)
    if (!match || Number(match[2]) < 1) {
      throw new ApiError(400, 'Pinned hits are not in expected format.')
    }
    return { id: match[1]!.trim(), position: Number(match[2]) }
  })
}
