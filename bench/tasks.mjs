/** Tasks of a page's main thread, from a trace of Chromium. */

/** The categories of a trace that has them. */
export const CATEGORIES = ['disabled-by-default-devtools.timeline']

/**
 * How long each task ran on a processor, in milliseconds. A task that waits for a busy machine does not run.
 * @param {{ name: string, pid: number, tid: number, tdur?: number, args: { name?: string } }[]} trace
 * @returns {number[]}
 */
export function tasksIn(trace) {
  const mains = new Set(
    trace
      .filter(({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain')
      .map(({ pid, tid }) => `${pid} ${tid}`),
  )
  return trace
    .filter(({ name, tdur = 0, pid, tid }) => name === 'RunTask' && tdur > 0 && mains.has(`${pid} ${tid}`))
    .map(({ tdur = 0 }) => tdur / 1000)
}
