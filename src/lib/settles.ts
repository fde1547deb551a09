/**
 * Waits for work with a time limit. Clears its timer, because a timer would keep a Durable Object awake.
 * @returns whether the work settled in time @throws what it throws in that time
 */
export async function settlesWithin(milliseconds: number, work: Promise<unknown>): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | null = null
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), milliseconds)
  })
  try {
    return await Promise.race([work.then(() => true), late])
  } finally {
    clearTimeout(timer)
  }
}
