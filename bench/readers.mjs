/**
 * Many streams read at once, in a process of its own: the gaps between the pieces of each, as a client sees them.
 * Waits for a message `{ count, ramp, url, method, headers, bodies, marker, end }`, starts a stream every `ramp`
 * milliseconds, each with the next body, and answers with what it saw.
 */
import { Agent, request } from 'node:http'
import { percentile } from './report.mjs'

const agent = new Agent({ keepAlive: false, maxSockets: Infinity })

/** One stream. @returns its gaps in milliseconds, and how long its first piece took */
const read = ({ url, method, headers, body, marker, end }) =>
  new Promise((resolve, reject) => {
    const started = performance.now()
    const gaps = []
    let first
    let last
    let tail = ''
    let ended = false
    const outgoing = request(url, { agent, method, headers }, (response) => {
      response.setEncoding('latin1')
      response.on('data', (text) => {
        const now = performance.now()
        const seen = tail + text
        ended ||= seen.includes(end)
        tail = seen.slice(-200)
        if (!text.includes(marker)) return
        if (last === undefined) first = now - started
        else gaps.push(now - last)
        last = now
      })
      response.on('error', reject)
      response.on('end', () => {
        if (response.statusCode !== 200) reject(new Error(`${response.statusCode} ${tail}`))
        else if (!ended) reject(new Error(`a stream is not whole: ...${tail}`))
        else resolve({ gaps, first })
      })
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

process.on('message', async ({ count, ramp, bodies, ...stream }) => {
  const streaming = Array.from({ length: count }, (_, index) =>
    sleep(index * ramp).then(() => read({ ...stream, body: bodies?.[index] })),
  )
  const settled = await Promise.allSettled(streaming)
  const streams = settled.flatMap(({ value }) => value ?? [])
  const errors = settled.flatMap(({ reason }) => reason?.message ?? [])
  const gaps = streams.flatMap((one) => one.gaps)
  const firsts = streams.map((one) => one.first)
  process.send({
    whole: streams.length,
    errors: errors.length,
    error: errors[0],
    gap50: percentile(gaps, 50),
    gap99: percentile(gaps, 99),
    first50: percentile(firsts, 50),
    first99: percentile(firsts, 99),
  })
})
