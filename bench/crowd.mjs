/**
 * A crowd, in a process of its own: opens requests at the same instant and leaves them open. Waits for a message
 * `{ url, init, bodies }` and answers, once all have a status, with how many got which. Leaves on `'leave'`.
 */
let leave = new AbortController()

process.on('message', async (message) => {
  if (message === 'leave') {
    leave.abort()
    leave = new AbortController()
    return
  }
  const { url, init, bodies } = message
  const { signal } = leave
  const ends = {}
  await Promise.all(
    bodies.map(async (body) => {
      const { status } = await fetch(url, { ...init, body, signal }).catch((error) => ({
        status: error.cause?.code ?? error.name,
      }))
      ends[status] = (ends[status] ?? 0) + 1
    }),
  )
  process.send(ends)
})
