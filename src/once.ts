/**
 * A value that is made when it is first asked for, and kept: for what costs a start and is not needed by it.
 *
 * Regular expressions over Unicode's classes are made so. V8 reads every literal before the first request, reached or
 * not, and looks up each of its `\p{...}` then: the sixty of them cost a tenth of a start.
 */
export function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

/** A regular expression that is made when it is first asked for. @param source as it stands between the slashes of a literal */
export const regExp = (source: string, flags: string): (() => RegExp) => once(() => new RegExp(source, flags))
