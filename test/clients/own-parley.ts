/** A Parley of a test's own, which can be killed, and started again over the same storage. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inject } from 'vitest'

export class OwnParley {
  #folder: string
  #child: ChildProcess | undefined
  /** where it answers; another place after each start */
  url = ''
  /** what it has written to stdout and stderr, in all its lives */
  output = ''
  /** how often it was started */
  life = 0

  #told: Record<string, string>

  /** @param told what its server is told (own-server.mjs) */
  constructor(told: Record<string, string> = {}) {
    this.#told = told
    this.#folder = mkdtempSync(join(tmpdir(), 'parley-own-'))
  }

  async boot(): Promise<void> {
    const args = [inject('bundle'), join(this.#folder, 'storage')]
    const child = fork(join(import.meta.dirname, 'own-server.mjs'), args, {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      env: { ...process.env, ...this.#told },
    })
    this.#child = child
    this.life += 1
    for (const [from, to] of [
      [child.stdout!, process.stdout],
      [child.stderr!, process.stderr],
    ] as const) {
      from.on('data', (data) => {
        this.output += data
        to.write(data)
      })
    }
    const [url] = await Promise.race([
      once(child, 'message'),
      once(child, 'exit').then(() => Promise.reject(new Error('The server did not start.'))),
    ])
    this.url = url
  }

  get isDead(): boolean {
    const { exitCode, signalCode } = this.#child!
    return exitCode !== null || signalCode !== null
  }

  /** Kills the process of workerd, and the one that started it, at once. */
  async kill(): Promise<void> {
    if (this.#child === undefined || this.isDead) return
    const gone = once(this.#child, 'exit')
    process.kill(-Number(this.#child.pid), 'SIGKILL')
    await gone
  }

  /**
   * A connection may break a moment before the process is known to be dead, or be seen to when the next one runs already.
   * @param life in which the connection was made @throws `error` when that life has not ended
   */
  async requireDead(error: unknown, life = this.life): Promise<void> {
    if (this.isDead || life !== this.life) return
    const late = new Promise((_, reject) => setTimeout(() => reject(error), 5_000))
    await Promise.race([once(this.#child!, 'exit'), late])
  }

  async remove(): Promise<void> {
    await this.kill()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
