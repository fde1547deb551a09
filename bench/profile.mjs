/**
 * CPU of one isolate of workerd, by V8's sampling profiler.
 *
 * A sample is taken only while the isolate runs: its JavaScript, its garbage collection, and what the runtime does for it
 * meanwhile. Sockets and the disk are outside of it, as they are on Cloudflare, where they do not count as a Worker's CPU.
 */

/** Microseconds between samples. */
const INTERVAL = 100

/** A connection to the inspector of one Worker. */
export class CpuProfiler {
  #socket
  #calls = new Map()
  #last = 0

  /** @param {string} url of the inspector @returns {Promise<CpuProfiler>} */
  static async connect(url) {
    const profiler = new CpuProfiler()
    profiler.#socket = new WebSocket(url)
    await new Promise((resolve, reject) => {
      profiler.#socket.addEventListener('open', resolve, { once: true })
      profiler.#socket.addEventListener('error', () => reject(new Error(`no inspector at ${url}`)))
    })
    profiler.#socket.addEventListener('message', ({ data }) => {
      const { id, result, error } = JSON.parse(data)
      const call = profiler.#calls.get(id)
      profiler.#calls.delete(id)
      if (error) call?.reject(new Error(error.message))
      else call?.resolve(result)
    })
    await profiler.#call('Profiler.enable')
    await profiler.#call('Profiler.setSamplingInterval', { interval: INTERVAL })
    return profiler
  }

  #call(method, params = {}) {
    const id = ++this.#last
    return new Promise((resolve, reject) => {
      this.#calls.set(id, { resolve, reject })
      this.#socket.send(JSON.stringify({ id, method, params }))
    })
  }

  /**
   * Runs some work. @returns {Promise<number>} the samples of the isolate meanwhile
   */
  async samples(work) {
    await this.#call('Profiler.start')
    await work()
    const { profile } = await this.#call('Profiler.stop')
    const idle = new Set(
      profile.nodes.filter(({ callFrame }) => callFrame.functionName === '(idle)').map(({ id }) => id),
    )
    return profile.samples.filter((id) => !idle.has(id)).length
  }

  close() {
    this.#socket.close()
  }
}
