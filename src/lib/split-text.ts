/** Splits a text into pieces of at most this many UTF-16 units, never within a character. */
export function splitText(text: string, longest: number): string[] {
  const pieces: string[] = []
  for (let start = 0; start < text.length; ) {
    let end = Math.min(text.length, start + longest)
    if (end < text.length && /[\ud800-\udbff]/.test(text[end - 1]!)) end -= 1
    pieces.push(text.slice(start, end))
    start = end
  }
  return pieces
}
