/**
 * A reader of multipart/form-data (RFC 7578) that accepts what clients really send. Pure.
 *
 * workerd's own parser does not work here. It refuses the body of Microsoft's client, which does not quote the name
 * of its first part, and it decodes parts without a file name as text, which damages binary ones.
 */
import { ApiError } from '../../errors'

export interface Part {
  name: string
  filename?: string
  /** its media type without parameters, in lower case; '' where it has none */
  type: string
  bytes: Uint8Array
}

const LONGEST_HEAD = 16_384
const MOST_PARTS = 100
const LONGEST_BOUNDARY = 200

const CR = 0x0d
const LF = 0x0a
const DASH = 0x2d

const malformed = (why: string): ApiError => new ApiError(400, `The multipart body is malformed: ${why}.`)

/** The boundary that a content type names. @throws ApiError 400 without one */
export function boundaryOf(contentType: string): string {
  const [, quoted, bare] = /;\s*boundary=(?:"([^"]+)"|([^\s;]+))/i.exec(contentType) ?? []
  const boundary = quoted ?? bare ?? ''
  if (boundary === '' || boundary.length > LONGEST_BOUNDARY)
    throw malformed('its content type names no boundary')
  return boundary
}

/** @throws ApiError 400 */
export function readMultipart(bytes: Uint8Array, boundary: string): Part[] {
  const reader = new Reader(bytes, boundary)
  const parts: Part[] = []
  reader.skipPreamble()
  while (!reader.atEnd) {
    if (parts.length === MOST_PARTS) throw malformed(`it has more than ${MOST_PARTS} parts`)
    parts.push(reader.readPart())
  }
  return parts
}

class Reader {
  readonly #bytes: Uint8Array
  readonly #delimiter: Uint8Array
  /** after the last delimiter, before its line break */
  #at = 0

  constructor(bytes: Uint8Array, boundary: string) {
    this.#bytes = bytes
    this.#delimiter = new TextEncoder().encode(`--${boundary}`)
  }

  skipPreamble(): void {
    const start = this.#findDelimiter(0)
    if (start === undefined) throw malformed('its boundary is nowhere in it')
    this.#at = start + this.#delimiter.length
  }

  /** Whether the delimiter before this place was the last one. */
  get atEnd(): boolean {
    return this.#bytes[this.#at] === DASH && this.#bytes[this.#at + 1] === DASH
  }

  readPart(): Part {
    this.#skipLine()
    const head = this.#readHead()
    const start = this.#at
    const end = this.#findDelimiter(start)
    if (end === undefined) throw malformed('it ends before its last boundary')
    this.#at = end + this.#delimiter.length
    return { ...describe(head), bytes: this.#bytes.subarray(start, Math.max(start, this.#beforeBreak(end))) }
  }

  /** The position of the next delimiter. It must be at the start of a line, with nothing else on that line. */
  #findDelimiter(from: number): number | undefined {
    for (let at = from; ; at++) {
      at = this.#bytes.indexOf(DASH, at)
      if (at < 0) return undefined
      if (this.#isDelimiter(at)) return at
    }
  }

  #isDelimiter(at: number): boolean {
    if (at > 0 && this.#bytes[at - 1] !== LF) return false
    if (!this.#delimiter.every((byte, index) => this.#bytes[at + index] === byte)) return false
    const after = this.#bytes[at + this.#delimiter.length]
    const next = this.#bytes[at + this.#delimiter.length + 1]
    if (after === DASH) return next === DASH
    return after === CR || after === LF || after === 0x20 || after === 0x09
  }

  /** The position of the line break before a delimiter. The line break belongs to the delimiter. */
  #beforeBreak(delimiter: number): number {
    const feed = delimiter - 1
    return this.#bytes[feed - 1] === CR ? feed - 1 : feed
  }

  #skipLine(): void {
    const feed = this.#bytes.indexOf(LF, this.#at)
    if (feed < 0) throw malformed('it ends before its last boundary')
    this.#at = feed + 1
  }

  /** The lines before an empty one. */
  #readHead(): string[] {
    const lines: string[] = []
    for (let size = 0; ; ) {
      const feed = this.#bytes.indexOf(LF, this.#at)
      if (feed < 0) throw malformed('it ends before its last boundary')
      const line = new TextDecoder().decode(this.#bytes.subarray(this.#at, feed)).replace(/\r$/, '')
      this.#at = feed + 1
      if (line === '') return lines
      size += line.length
      if (size > LONGEST_HEAD) throw malformed('the headers of a part are too long')
      lines.push(line)
    }
  }
}

/** What a part's headers say. @throws ApiError 400 for a part without a name */
function describe(head: string[]): Omit<Part, 'bytes'> {
  const header = (name: string): string => {
    const line = head.find((each) => each.toLowerCase().startsWith(`${name}:`))
    return line?.slice(name.length + 1).trim() ?? ''
  }
  const disposition = header('content-disposition')
  const name = parameter(disposition, 'name')
  if (name === undefined) throw malformed('a part of it has no name')
  const filename = parameter(disposition, 'filename')
  const type = header('content-type').split(';')[0]!.trim().toLowerCase()
  return { name, ...(filename !== undefined && { filename }), type }
}

/** A parameter of a header, quoted or not. Browsers write a quote in a file's name as `%22`, others as `\"`. */
function parameter(header: string, name: string): string | undefined {
  const [, quoted, bare] =
    new RegExp(`;\\s*${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s;"]+))`, 'i').exec(header) ?? []
  return quoted?.replace(/\\(.)/g, '$1').replaceAll('%22', '"') ?? bare
}
