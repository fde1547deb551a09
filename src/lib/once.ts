/**
 * A value that is made when it is first needed, and kept. It then costs no start-up time.
 *
 * Use it for schemas, lists of words, and regular expressions over Unicode classes. valibot makes an object for each part
 * of a schema: all schemas together took a seventh of the time that modules run when they are loaded. V8 compiles every
 * literal before the first request, used or not, and looks up each `\p{...}`: the sixty of them took a tenth of the start-up.
 */
export function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

/**
 * Values that are made of texts, and kept, because texts repeat the same few thousand words.
 * @param most values: then all are forgotten
 */
export function remembered<Value>(most: number, make: (text: string) => Value): (text: string) => Value {
  const known = new Map<string, Value>()
  return (text) => {
    const kept = known.get(text)
    if (kept !== undefined) return kept
    if (known.size >= most) known.clear()
    const value = make(text)
    known.set(text, value)
    return value
  }
}

/**
 * A regular expression that is made when it is first needed.
 *
 * Regular expressions write characters beyond ASCII as `\u2019`, here and in literals: bundling copies them as they are
 * written, and escapes all other strings. A single character beyond Latin-1 makes V8 hold the whole bundle, and read it at
 * the start, at two bytes a character.
 * @param source as between the slashes of a literal
 */
export const regExp = (source: string, flags: string): (() => RegExp) => once(() => new RegExp(source, flags))
