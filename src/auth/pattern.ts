/**
 * Matches the collections of an API key: a name, `*`, or a regular expression that has to match the whole name.
 *
 * The pattern comes from an administrator, the name from a stranger. With a backtracking matcher, a name can block
 * the Worker if the pattern is like `(a+)+b`. So patterns are compiled to a nondeterministic automaton and matched in
 * at most states x characters steps. A pattern that an automaton cannot express (look-around, back-references, word
 * boundaries), or that is invalid, matches only as a plain name.
 */

const MAX_STATES = 1_000
/** Limit of nodes built, including those without a state: `(){9999}` has many. */
const MAX_BUILT = 10_000
const MAX_NESTING = 100
const MAX_NAME = 1_000

type Test = (character: string) => boolean

type Node =
  | { kind: 'character'; test: Test }
  | { kind: 'sequence' | 'choice'; nodes: Node[] }
  | { kind: 'repeat'; node: Node; min: number; max: number }
  | { kind: 'start' | 'end' }

type State =
  | { kind: 'character'; test: Test; next: number }
  | { kind: 'split'; next: number[] }
  | { kind: 'start' | 'end'; next: number }
  | { kind: 'match' }

class Unsupported extends Error {}

const CLASSES: Record<string, Test> = {
  d: (character) => /[0-9]/.test(character),
  w: (character) => /\w/.test(character),
  s: (character) => /\s/.test(character),
}

const ESCAPES: Record<string, string> = { n: '\n', r: '\r', t: '\t', f: '\f', v: '\v' }

/** A recursive descent parser; `#at` is the position of the next character. */
class Parser {
  readonly #characters: string[]
  #at = 0
  #nesting = 0

  constructor(pattern: string) {
    this.#characters = [...pattern]
  }

  parse(): Node {
    const node = this.#choice()
    if (this.#at < this.#characters.length) throw new Unsupported()
    return node
  }

  #peek(offset = 0): string | undefined {
    return this.#characters[this.#at + offset]
  }

  #take(): string {
    const character = this.#characters[this.#at++]
    if (character === undefined) throw new Unsupported()
    return character
  }

  #choice(): Node {
    const nodes = [this.#sequence()]
    while (this.#peek() === '|') {
      this.#at++
      nodes.push(this.#sequence())
    }
    return { kind: 'choice', nodes }
  }

  #sequence(): Node {
    const nodes: Node[] = []
    for (let next = this.#peek(); next !== undefined && next !== '|' && next !== ')'; next = this.#peek()) {
      nodes.push(this.#quantified())
    }
    return { kind: 'sequence', nodes }
  }

  #quantified(): Node {
    let node = this.#atom()
    const bounds = this.#bounds()
    if (!bounds) return node
    if (node.kind === 'start' || node.kind === 'end') throw new Unsupported()
    node = { kind: 'repeat', node, ...bounds }
    // Lazy and greedy quantifiers match the same whole names.
    if (this.#peek() === '?') this.#at++
    return node
  }

  #bounds(): { min: number; max: number } | undefined {
    const character = this.#peek()
    if (character !== '*' && character !== '+' && character !== '?' && character !== '{') return undefined
    this.#at++
    if (character === '*') return { min: 0, max: Infinity }
    if (character === '+') return { min: 1, max: Infinity }
    if (character === '?') return { min: 0, max: 1 }
    const end = this.#characters.indexOf('}', this.#at)
    const text = end < 0 ? '' : this.#characters.slice(this.#at, end).join('')
    const match = /^(\d{1,4})(?:(,)(\d{1,4})?)?$/.exec(text)
    if (!match) throw new Unsupported()
    this.#at = end + 1
    const min = Number(match[1])
    const max = match[3] !== undefined ? Number(match[3]) : match[2] ? Infinity : min
    if (max < min) throw new Unsupported()
    return { min, max }
  }

  #atom(): Node {
    const character = this.#take()
    switch (character) {
      case '^':
        return { kind: 'start' }
      case '$':
        return { kind: 'end' }
      case '.':
        return { kind: 'character', test: (other) => !/[\n\r\u2028\u2029]/.test(other) }
      case '(': {
        if (this.#peek() === '?') {
          if (this.#peek(1) !== ':') throw new Unsupported()
          this.#at += 2
        }
        if (++this.#nesting > MAX_NESTING) throw new Unsupported()
        const node = this.#choice()
        if (this.#take() !== ')') throw new Unsupported()
        this.#nesting--
        return node
      }
      case '[':
        return { kind: 'character', test: this.#class() }
      case '\\': {
        const escaped = this.#escaped()
        return typeof escaped === 'string' ? literal(escaped) : { kind: 'character', test: escaped }
      }
      case '*':
      case '+':
      case '?':
      case '{':
      case ')':
        throw new Unsupported()
      default:
        return literal(character)
    }
  }

  #escaped(): string | Test {
    const character = this.#take()
    const known = CLASSES[character.toLowerCase()]
    if (known) return character === character.toLowerCase() ? known : (other) => !known(other)
    const control = ESCAPES[character]
    if (control) return control
    // Any other letter or digit has a meaning in regular expressions that is not supported here.
    if (/[A-Za-z0-9]/.test(character)) throw new Unsupported()
    return character
  }

  #class(): Test {
    const negated = this.#peek() === '^'
    if (negated) this.#at++
    const tests: Test[] = []
    for (let character = this.#take(); character !== ']'; character = this.#take()) {
      const from = character === '\\' ? this.#escaped() : character
      if (this.#peek() === '-' && this.#peek(1) !== ']' && typeof from === 'string') {
        this.#at++
        const next = this.#take()
        const to = next === '\\' ? this.#escaped() : next
        if (typeof to !== 'string' || to.codePointAt(0)! < from.codePointAt(0)!) throw new Unsupported()
        const [low, high] = [from.codePointAt(0)!, to.codePointAt(0)!]
        tests.push((other) => other.codePointAt(0)! >= low && other.codePointAt(0)! <= high)
      } else {
        tests.push(typeof from === 'string' ? (other) => other === from : from)
      }
    }
    return (character) => tests.some((test) => test(character)) !== negated
  }
}

const literal = (character: string): Node => ({ kind: 'character', test: (other) => other === character })

/** Compiles a node's automaton backwards, so that every state knows its successor. State 0 is the match. */
function compile(root: Node): { states: State[]; first: number } {
  const states: State[] = [{ kind: 'match' }]
  const add = (state: State): number => {
    if (states.length >= MAX_STATES) throw new Unsupported()
    return states.push(state) - 1
  }
  let built = 0
  const build = (node: Node, next: number): number => {
    if (++built > MAX_BUILT) throw new Unsupported()
    switch (node.kind) {
      case 'character':
        return add({ kind: 'character', test: node.test, next })
      case 'sequence':
        return node.nodes.reduceRight((following, part) => build(part, following), next)
      case 'choice':
        return node.nodes.length === 1
          ? build(node.nodes[0]!, next)
          : add({ kind: 'split', next: node.nodes.map((part) => build(part, next)) })
      case 'repeat': {
        let start = next
        if (node.max === Infinity) {
          const loop: State = { kind: 'split', next: [next] }
          start = add(loop)
          loop.next.push(build(node.node, start))
        } else {
          for (let count = node.min; count < node.max; count++) {
            start = add({ kind: 'split', next: [build(node.node, start), next] })
          }
        }
        for (let count = 0; count < node.min; count++) start = build(node.node, start)
        return start
      }
      default:
        return add({ kind: node.kind, next })
    }
  }
  return { states, first: build(root, 0) }
}

/** Names that no collection has. A pattern that accepts these accepts anything. */
const NOBODYS = ['qxzjvkwpygbf', 'QXZJVKWPYGBF', '7039184625', '_qx-7.zj']
const BEGINNINGS = [...'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_']

/**
 * Whether a pattern names no particular collection: `*`, and expressions such as `.*`, `.+`, `[a-z_]+` or `[^x].*`. A
 * pattern that fixes a beginning, an end or a part does name particular collections.
 */
export function fitsAnyName(pattern: string): boolean {
  const matches = collectionPattern(pattern)
  return NOBODYS.some((end) => BEGINNINGS.filter((beginning) => matches(beginning + end)).length > 1)
}

/** Compiles a key's collection pattern to a test of names. */
export function collectionPattern(pattern: string): (name: string) => boolean {
  if (pattern === '*') return () => true
  let automaton: ReturnType<typeof compile>
  try {
    automaton = compile(new Parser(pattern).parse())
  } catch (error) {
    if (error instanceof Unsupported) return (name) => name === pattern
    throw error
  }
  const { states, first } = automaton

  return (name) => {
    if (name === pattern) return true
    const characters = [...name]
    if (characters.length > MAX_NAME) return false
    const reach = (roots: number[], position: number): Set<number> => {
      const reached = new Set<number>()
      const waiting = [...roots]
      for (let index = waiting.pop(); index !== undefined; index = waiting.pop()) {
        if (reached.has(index)) continue
        reached.add(index)
        const state = states[index]!
        if (state.kind === 'split') waiting.push(...state.next)
        else if (state.kind === 'start' && position === 0) waiting.push(state.next)
        else if (state.kind === 'end' && position === characters.length) waiting.push(state.next)
      }
      return reached
    }
    let reached = reach([first], 0)
    for (const [position, character] of characters.entries()) {
      const next: number[] = []
      for (const index of reached) {
        const state = states[index]!
        if (state.kind === 'character' && state.test(character)) next.push(state.next)
      }
      if (next.length === 0) return false
      reached = reach(next, position + 1)
    }
    return reached.has(0)
  }
}
