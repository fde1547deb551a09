/**
 * A place in an R2 bucket, by R2's S3 API: https://developers.cloudflare.com/r2/api/s3/api/. Another store that speaks
 * S3 works too.
 */
import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { AwsClient } from 'aws4fetch'
import { XMLParser } from 'fast-xml-parser'
import { EXIT, Failure } from '../server.mjs'

/** A larger file goes up in parts of this size. R2 wants them equal, but for the last, and takes 10,000 of them. */
const PART_BYTES = 64 << 20

/** Under which name an object keeps its checksum. */
const CHECKSUM = 'x-amz-meta-sha256'

/** The checksum of nothing. */
const EMPTY = createHash('sha256').digest('hex')

const ADDRESS = /^r2:\/\/([a-z0-9][a-z0-9.-]{1,62})(?:\/(.*?))?\/*$/

export class Bucket {
  #client
  #base
  #partBytes

  /**
   * @param {string} address such as `r2://backups/monday`
   * @param {Record<string, string | undefined>} env AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, for temporary ones,
   *   AWS_SESSION_TOKEN; CLOUDFLARE_ACCOUNT_ID, or AWS_ENDPOINT_URL_S3; AWS_REGION
   * @param {number} [partBytes]
   * @throws Failure for another address, and for what the environment lacks
   */
  constructor(address, env, partBytes = PART_BYTES) {
    const [, bucket, prefix = ''] = ADDRESS.exec(address) ?? []
    if (bucket === undefined) {
      throw new Failure(EXIT.usage, `${address} is no place in R2. Name one such as r2://BUCKET/monday.`)
    }
    const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = env
    const account = env.CLOUDFLARE_ACCOUNT_ID
    const endpoint =
      env.AWS_ENDPOINT_URL_S3 || (account ? `https://${account}.r2.cloudflarestorage.com` : undefined)
    if (!accessKeyId || !secretAccessKey || !endpoint) {
      throw new Failure(
        EXIT.usage,
        'R2 needs the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (an R2 API token), and CLOUDFLARE_ACCOUNT_ID or AWS_ENDPOINT_URL_S3.',
      )
    }
    this.#client = new AwsClient({
      accessKeyId,
      secretAccessKey,
      ...(env.AWS_SESSION_TOKEN && { sessionToken: env.AWS_SESSION_TOKEN }),
      service: 's3',
      region: env.AWS_REGION || 'auto',
      retries: 4,
      initRetryMs: 200,
    })
    const path = [bucket, ...prefix.split('/').filter((part) => part !== '')].map(encodeURIComponent)
    this.#base = `${endpoint.replace(/\/+$/, '')}/${path.join('/')}`
    this.#partBytes = partBytes
    this.address = address.replace(/\/+$/, '')
  }

  /**
   * @param {string} name
   * @returns {Promise<{ bytes: number, sha256: string | undefined } | undefined>} undefined where there is no such object
   * @throws Failure
   */
  async find(name) {
    // One byte says as much as HEAD. Node asks for the connection's end after HEAD, and its parser may throw where that comes at once:
    // nothing can catch it.
    const response = await this.#send('GET', name, { headers: { range: 'bytes=0-0' }, accepted: [404, 416] })
    const { status } = response
    // A store that takes no ranges sends all of it.
    if (status === 200) await response.body?.cancel()
    else await response.arrayBuffer()
    if (status === 404) return undefined
    // An empty object has no first byte.
    if (status === 416) return { bytes: 0, sha256: EMPTY }
    const sha256 = response.headers.get(CHECKSUM) ?? undefined
    const size = response.headers.get('content-range')?.split('/').at(-1)
    return { bytes: Number(size ?? response.headers.get('content-length')), sha256 }
  }

  /** @param {string} name @param {string} file where it is written @throws Failure */
  async download(name, file) {
    const { body } = await this.#send('GET', name)
    if (body === null) throw new Failure(EXIT.unreachable, `${this.address}/${name} came without content.`)
    const content = Readable.fromWeb(/** @type {any} */ (body))
    try {
      await pipeline(content, createWriteStream(file, { mode: 0o600 }))
    } catch (error) {
      // What the file system says names its call.
      if (/** @type {NodeJS.ErrnoException} */ (error).syscall !== undefined) throw error
      throw new Failure(
        EXIT.unreachable,
        `${this.address}/${name} broke off. Run the command again: what came down whole is kept.`,
      )
    }
  }

  /** @param {string} name @param {string} file @param {string} sha256 of the file @throws Failure */
  async upload(name, file, sha256) {
    const handle = await open(file)
    try {
      const { size } = await handle.stat()
      const read = async (/** @type {number} */ at) => {
        const piece = Buffer.alloc(Math.min(this.#partBytes, size - at))
        await handle.read(piece, 0, piece.length, at)
        return piece
      }
      const headers = { [CHECKSUM]: sha256 }
      if (size <= this.#partBytes) await this.#send('PUT', name, { headers, body: await read(0) })
      else await this.#uploadParts(name, size, headers, read)
    } finally {
      await handle.close()
    }
  }

  /**
   * @param {string} name
   * @param {number} size
   * @param {Record<string, string>} headers
   * @param {(at: number) => Promise<Buffer>} read
   */
  async #uploadParts(name, size, headers, read) {
    const begun = await this.#send('POST', `${name}?uploads`, { headers })
    const upload = encodeURIComponent(fieldOf(await begun.text(), 'UploadId') ?? '')
    /** @type {string[]} */
    const parts = []
    for (let at = 0; at < size; at += this.#partBytes) {
      const number = parts.length + 1
      const path = `${name}?partNumber=${number}&uploadId=${upload}`
      const { headers: sent } = await this.#send('PUT', path, { body: await read(at) })
      parts.push(`<Part><PartNumber>${number}</PartNumber><ETag>${sent.get('etag')}</ETag></Part>`)
    }
    const body = `<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`
    const done = await (await this.#send('POST', `${name}?uploadId=${upload}`, { body })).text()
    // S3 may find out that it failed after it has begun to answer with 200.
    if (fieldOf(done, 'ETag') === undefined)
      throw new Failure(EXIT.rejected, refusalOf(this.address, 200, done))
  }

  /**
   * @param {string} method
   * @param {string} path below the place
   * @param {{ headers?: Record<string, string>, body?: Buffer | string, accepted?: number[] }} [options] `accepted`: other status
   *   codes that are answers
   * @returns {Promise<Response>}
   * @throws Failure that names no credential
   */
  async #send(method, path, { headers = {}, body, accepted = [] } = {}) {
    let response
    try {
      response = await this.#client.fetch(`${this.#base}/${path}`, {
        method,
        headers,
        ...(body !== undefined && { body: /** @type {any} */ (body) }),
      })
    } catch (error) {
      const { cause } = /** @type {{ cause?: Error }} */ (error)
      throw new Failure(EXIT.unreachable, `R2 cannot be reached: ${cause?.message ?? error}`)
    }
    if (response.ok || accepted.includes(response.status)) return response
    const { status } = response
    const code = status === 401 || status === 403 ? EXIT.refused : EXIT.rejected
    throw new Failure(code, refusalOf(this.address, status, await response.text()))
  }
}

/**
 * @param {string} xml
 * @param {string} field
 * @returns {string | undefined} a field of the outermost element; undefined too for what is no XML, such as a proxy's page
 */
function fieldOf(xml, field) {
  try {
    const parsed = new XMLParser({ parseTagValue: false, ignoreDeclaration: true }).parse(xml)
    const value = Object.values(parsed)[0]?.[field]
    return typeof value === 'string' && value !== '' ? value : undefined
  } catch {
    return undefined
  }
}

/**
 * What S3 says, in one line. The rest of its reply can hold what was signed.
 * @param {string} address
 * @param {number} status
 * @param {string} xml
 */
function refusalOf(address, status, xml) {
  const said = [fieldOf(xml, 'Code'), fieldOf(xml, 'Message')].filter(Boolean).join(': ')
  const advice =
    status === 401 || status === 403
      ? ' The API token needs Object Read & Write for this bucket.'
      : status === 404
        ? ' Is the bucket there? npx wrangler r2 bucket create makes it.'
        : ''
  return `${address} answered ${status}${said && ` (${said})`}.${advice}`
}
