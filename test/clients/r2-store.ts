/**
 * R2 with its S3 API: Miniflare's R2 behind the requests that S3 documents. Signatures are checked here with Node's crypto, as
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html describes them.
 */
import { createHash, createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { convertV4MiniflareOptions, Miniflare } from 'miniflare'

export const BUCKET = 'backups'

export interface R2Store {
  url: string
  accessKeyId: string
  secretAccessKey: string
  /** `METHOD path` of every request, without the bucket */
  calls: string[]
  /** Answers the next request that matches with this status, once, and with what R2 says then. */
  refuseOnce(call: RegExp, status: number, code: string): void
  keys(): Promise<string[]>
  read(key: string): Promise<string>
  write(key: string, text: string): Promise<void>
  stop(): Promise<void>
}

const sha256 = (text: string | Buffer) => createHash('sha256').update(text).digest('hex')
const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()
const encoded = (text: string) =>
  encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)

/** The signature that a request should have. */
function signatureOf(request: IncomingMessage, secret: string, scope: string, signed: string): string {
  const url = new URL(request.url!, 'http://store')
  const query = [...url.searchParams]
    .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
    .sort()
    .join('&')
  const headers = signed
    .split(';')
    .map((name) => `${name}:${String(request.headers[name]).trim().replace(/ +/g, ' ')}\n`)
    .join('')
  const content = String(request.headers['x-amz-content-sha256'])
  const canonical = [request.method, url.pathname, query, headers, signed, content].join('\n')
  const [date, region, service] = scope.split('/')
  const toSign = ['AWS4-HMAC-SHA256', request.headers['x-amz-date'], scope, sha256(canonical)].join('\n')
  const key = [date!, region!, service!, 'aws4_request'].reduce<string | Buffer>(hmac, `AWS4${secret}`)
  return createHmac('sha256', key).update(toSign).digest('hex')
}

class Refusal extends Error {
  readonly status: number
  readonly code: string
  constructor(status: number, code: string) {
    super(`This store says ${code}`)
    this.status = status
    this.code = code
  }
}

export async function startR2Store(): Promise<R2Store> {
  const accessKeyId = 'an-access-key-id'
  const secretAccessKey = 'a-secret-access-key-of-the-test'
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      modules: true,
      script: 'export default { fetch: () => new Response() }',
      compatibilityDate: '2026-08-15',
      r2Buckets: { [BUCKET]: BUCKET },
    }),
  )
  const r2 = await miniflare.getR2Bucket(BUCKET)
  const calls: string[] = []
  const refusals: { call: RegExp; refusal: Refusal }[] = []

  const requireSigned = (request: IncomingMessage) => {
    const [, id, scope, signed, signature] =
      /^AWS4-HMAC-SHA256 Credential=([^/]+)\/([^,]+), ?SignedHeaders=([^,]+), ?Signature=(\w+)$/.exec(
        request.headers.authorization ?? '',
      ) ?? []
    if (id !== accessKeyId) throw new Refusal(403, 'InvalidAccessKeyId')
    if (signature !== signatureOf(request, secretAccessKey, scope!, signed!)) {
      throw new Refusal(403, 'SignatureDoesNotMatch')
    }
  }

  const answer = async (request: IncomingMessage, key: string, query: URLSearchParams, body: Buffer) => {
    const sum = request.headers['x-amz-meta-sha256']
    const customMetadata: Record<string, string> = typeof sum === 'string' ? { sha256: sum } : {}
    const upload = query.get('uploadId')
    if (request.method === 'POST' && query.has('uploads')) {
      const { uploadId } = await r2.createMultipartUpload(key, { customMetadata })
      return {
        text: `<InitiateMultipartUploadResult><UploadId>${uploadId}</UploadId></InitiateMultipartUploadResult>`,
      }
    }
    if (request.method === 'POST' && upload !== null) {
      const parts = [
        ...String(body).matchAll(/<PartNumber>(\d+)<\/PartNumber><ETag>"?([^"<]+)"?<\/ETag>/g),
      ].map(([, number, etag]) => ({ partNumber: Number(number), etag: etag! }))
      const { etag } = await r2.resumeMultipartUpload(key, upload).complete(parts)
      return {
        text: `<CompleteMultipartUploadResult><ETag>"${etag}"</ETag></CompleteMultipartUploadResult>`,
      }
    }
    if (request.method === 'PUT') {
      if (request.headers['content-length'] === undefined) throw new Refusal(411, 'MissingContentLength')
      const { etag } =
        upload === null
          ? await r2.put(key, body, { customMetadata })
          : await r2.resumeMultipartUpload(key, upload).uploadPart(Number(query.get('partNumber')), body)
      return { headers: { etag: `"${etag}"` } }
    }
    const object = await r2.head(key)
    if (object === null) throw new Refusal(404, 'NoSuchKey')
    const { sha256: kept } = object.customMetadata ?? {}
    const headers = {
      etag: object.httpEtag,
      'content-length': String(object.size),
      ...(kept && { 'x-amz-meta-sha256': kept }),
    }
    const content = Buffer.from((await (await r2.get(key))?.arrayBuffer()) ?? [])
    if (request.headers.range === undefined) return { headers, text: content }
    if (object.size === 0) throw new Refusal(416, 'InvalidRange')
    // Only the first byte is asked for, to see what there is.
    const range = { 'content-length': '1', 'content-range': `bytes 0-0/${object.size}` }
    return { status: 206, headers: { ...headers, ...range }, text: content.subarray(0, 1) }
  }

  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url!, 'http://store')
    const key = decodeURIComponent(pathname.replace(`/${BUCKET}/`, ''))
    calls.push(`${request.method} ${request.url!.replace(`/${BUCKET}/`, '')}`)
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    try {
      requireSigned(request)
      if (!pathname.startsWith(`/${BUCKET}/`)) throw new Refusal(404, 'NoSuchBucket')
      const refused = refusals.findIndex(({ call }) => call.test(calls.at(-1)!))
      if (refused >= 0) throw refusals.splice(refused, 1)[0]!.refusal
      const {
        status = 200,
        text = '',
        headers = {},
      } = (await answer(request, key, searchParams, Buffer.concat(chunks))) as {
        status?: number
        text?: string | Buffer
        headers?: Record<string, string>
      }
      response.writeHead(status, headers).end(text)
    } catch (error) {
      const { status, code, message } =
        error instanceof Refusal ? error : { ...new Refusal(400, 'InvalidRequest'), message: String(error) }
      // S3 says what it would have signed, and for whom.
      const more = `<AWSAccessKeyId>${accessKeyId}</AWSAccessKeyId><StringToSign>AWS4</StringToSign>`
      response
        .writeHead(status, { 'content-type': 'application/xml' })
        .end(
          `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>${message}</Message>${more}</Error>`,
        )
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    accessKeyId,
    secretAccessKey,
    calls,
    refuseOnce: (call, status, code) => void refusals.push({ call, refusal: new Refusal(status, code) }),
    keys: async () => (await r2.list()).objects.map(({ key }) => key).sort(),
    read: async (key) => (await (await r2.get(key))?.text()) ?? '',
    write: async (key, text) => void (await r2.put(key, text)),
    stop: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
      await miniflare.dispose()
    },
  }
}
