/**
 * Sends an import from a process of its own: making the documents keeps an event loop busy, and a search that
 * shares it would wait for that instead of for the server.
 */
import { makeDocument } from './documents.mjs'

const [url, from, count] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])]
let n = from
const body = new ReadableStream({
  pull(controller) {
    if (n >= from + count) return controller.close()
    const lines = []
    for (let end = Math.min(n + 100, from + count); n < end; n++)
      lines.push(`${JSON.stringify(makeDocument(n))}\n`)
    controller.enqueue(new TextEncoder().encode(lines.join('')))
  },
})
const started = performance.now()
const response = await fetch(url, {
  method: 'POST',
  headers: { 'x-typesense-api-key': 'xyz' },
  body,
  duplex: 'half',
})
const results = (await response.text()).split('\n')
const failed = results.filter((line) => !line.includes('"success":true')).length
process.send({ seconds: (performance.now() - started) / 1000, imported: results.length - failed, failed })
process.disconnect()
