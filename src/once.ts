/**
 * A value that is made when it is first needed, and kept. It then costs no start-up time.
 *
 * This is how schemas, lists of words and regular expressions over Unicode classes are made. valibot makes an object for
 * each part of a schema: those of all modules took a seventh of the time that the modules ran when they were loaded. V8 compiles every literal before the first request, used or
 * not, and looks up each `\p{...}`: the sixty of them took a tenth of the start-up.
 */
export function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

/** A regular expression that is made when it is first needed. @param source as between the slashes of a literal */
export const regExp = (source: string, flags: string): (() => RegExp) => once(() => new RegExp(source, flags))
