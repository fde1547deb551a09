/** Every regular expression of the sources, and texts that bring out the worst in one. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Expression {
  file: string
  line: number
  source: string
  flags: string
}

/** What stands before a literal, where a slash is not a division. */
const BEFORE = /(?:^|[([{,;:=!&|?+\-*%~^<>\n]|\b(?:return|typeof|case|of|in|yield|await))\s*$/

/** Goes through TypeScript as far as it takes to tell a regular expression from strings, comments and divisions. */
function literalsIn(file: string, code: string): Expression[] {
  const found: Expression[] = []
  const lineAt = (at: number) => code.slice(0, at).split('\n').length
  /** depth of braces at which each open template goes on */
  const templates: number[] = []
  let depth = 0
  let at = 0
  const skipTemplate = () => {
    while (at < code.length && code[at] !== '`') {
      if (code[at] === '\\') at += 1
      else if (code.startsWith('${', at)) {
        at += 2
        templates.push(depth)
        return
      }
      at += 1
    }
    at += 1
  }
  while (at < code.length) {
    const letter = code[at]!
    if (code.startsWith('//', at)) at = (code.indexOf('\n', at) + 1 || code.length + 1) - 1
    else if (code.startsWith('/*', at)) at = code.indexOf('*/', at) + 2
    else if (letter === '"' || letter === "'") {
      at += 1
      while (code[at] !== letter) at += code[at] === '\\' ? 2 : 1
      at += 1
    } else if (letter === '`') {
      at += 1
      skipTemplate()
    } else if (letter === '{') {
      depth += 1
      at += 1
    } else if (letter === '}' && templates.at(-1) === depth) {
      templates.pop()
      at += 1
      skipTemplate()
    } else if (letter === '}') {
      depth -= 1
      at += 1
    } else if (letter === '/' && BEFORE.test(code.slice(Math.max(0, at - 40), at))) {
      const literal = /\/((?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)\/([a-z]*)/y
      literal.lastIndex = at
      const [whole, source, flags] = literal.exec(code) ?? []
      if (whole === undefined) at += 1
      else {
        found.push({ file, line: lineAt(at), source: source!, flags: flags! })
        at += whole.length
      }
    } else at += 1
  }
  return found
}

/** The expressions that are made with regExp (src/lib/once.ts), as they are written. */
function madeIn(file: string, code: string): Expression[] {
  const calls = code.matchAll(/regExp\(\s*String\.raw`([^`]*)`,\s*'([a-z]*)',?\s*\)/g)
  return [...calls].map(({ index, 1: source, 2: flags }) => ({
    file,
    line: code.slice(0, index).split('\n').length,
    source: source!,
    flags: flags!,
  }))
}

/** All of a folder, in the order of the files. */
export function expressionsIn(folder: string): Expression[] {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .sort()
  return files.flatMap((file) => {
    const code = readFileSync(join(folder, file), 'utf8')
    return [...literalsIn(file, code), ...madeIn(file, code)]
  })
}

/** A sample of what each class of characters holds. */
const CLASSES: [RegExp, string[]][] = [
  [/\\s|\\W|\\n/, [' ', '\n']],
  [/\\d|\\p\{N|0-9/, ['1']],
  [/\\w|a-z|\\p\{L|\./, ['a']],
  [/A-Z|\\p\{Lu|\\p\{L\}/, ['A']],
  [/\\p\{M/, ['\u0301']],
  [/Han/, ['漢']],
]

/**
 * Texts for an expression: what it is made of, repeated, with a beginning that may be needed and an end that does not
 * fit. An expression that tries a run of characters again from each of its places takes far too long for one of them.
 */
export function* worstCases(expression: Pick<Expression, 'source'>): Generator<(length: number) => string> {
  const source = expression.source.replace(/\\u(?!00[0-7])([0-9a-f]{4})/gi, (_, hex) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
  const letters = new Set<string>(
    CLASSES.flatMap(([pattern, samples]) => (pattern.test(source) ? samples : [])),
  )
  for (const letter of source.replace(/\\[pP]\{[^}]*\}|\\[a-zA-Z]|\(\?<?[=!:]/g, '')) {
    if (!/[\\()|+?{}]/.test(letter) || source.includes(`\\${letter}`)) letters.add(letter)
  }
  const words = source.match(/[a-z]{2,}/gi) ?? []
  const few = [...letters].slice(0, 12)
  const fewer = few.slice(0, 6)
  const units = new Set([
    ...letters,
    ...words.slice(0, 6),
    ...few.flatMap((one) => few.map((other) => one + other)),
    ...fewer.flatMap((one) => fewer.flatMap((two) => fewer.map((three) => one + two + three))),
    ...words.slice(0, 4).flatMap((word) => fewer.flatMap((letter) => [word + letter, letter + word])),
  ])
  for (const unit of units) {
    for (const tail of ['', '\u0000', '\n!']) {
      yield (length) => unit.repeat(Math.ceil(length / unit.length)) + tail
    }
  }
  for (const first of [...fewer, ...few.flatMap((one) => fewer.map((other) => one + other))]) {
    for (const unit of fewer) yield (length) => `${first}${unit.repeat(length)}\u0000`
  }
}

/** Above 8, which is linear, and below 64, which is quadratic. */
export const MOST_GROWTH = 40

/** What takes less counts as this, in milliseconds. */
const MOMENT_MS = 1

/**
 * How much longer work takes for eight times the text: 8 where it is linear, 64 where it is quadratic. CPU time
 * counts, the best of some tries, and what seems to grow too fast has to do so at four times the length as well: a busy
 * machine cannot fail it.
 * @param length of the shortest text
 */
export function growth(work: (length: number) => void, length: number): number {
  // Most are done in no time at eight times the length, and need no second look.
  if (best(work, 8 * length, 1) < 8 * MOMENT_MS) return 1
  const seen = best(work, 8 * length, 3) / best(work, length, 5)
  return seen < MOST_GROWTH ? seen : Math.min(seen, best(work, 32 * length, 3) / best(work, 4 * length, 5))
}

/**
 * Whether the work of a regular expression may be slow at eight times the length: it is looked at closely then. What takes eight
 * moments there and grows with the square takes half of one at a quarter of that, and what grows faster takes longer than anybody waits.
 * A function may do otherwise with a longer text, but not an expression.
 * @param length as that of `growth`
 */
export function mayGrow(work: (length: number) => void, length: number): boolean {
  // By the clock, of which CPU time is a part: half a million times to ask for that takes seconds.
  const before = performance.now()
  work(2 * length)
  return performance.now() - before > MOMENT_MS / 4
}

/** @returns milliseconds of CPU */
function timeOf(work: (length: number) => void, length: number): number {
  const before = process.threadCpuUsage()
  work(length)
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1_000
}

/** @returns milliseconds of CPU of the quickest try, or a moment where it takes less */
function best(work: (length: number) => void, length: number, tries: number): number {
  let least = Number.POSITIVE_INFINITY
  for (let at = 0; at < tries; at++) least = Math.min(least, timeOf(work, length))
  return Math.max(least, MOMENT_MS)
}
