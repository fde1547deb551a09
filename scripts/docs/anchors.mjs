/** Anchors of headings: the same in the site, in the sample's links and on GitHub. */

/**
 * A heading as the anchor that GitHub makes of it.
 * @param {string} heading its text, without Markdown
 */
export const anchor = (heading) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')

/** Makes the anchors of one page. A heading that comes again gets `-1`, `-2` and so on. */
export function anchors() {
  /** @type {Map<string, number>} */
  const seen = new Map()
  return (/** @type {string} */ heading) => {
    const name = anchor(heading)
    const times = seen.get(name) ?? 0
    seen.set(name, times + 1)
    return times === 0 ? name : `${name}-${times}`
  }
}
