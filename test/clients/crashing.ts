/** A Parley that can be killed, and started again over the same storage. */
import { type ChildProcess, fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = join(import.meta.dirname, '../..')

export class CrashingParley {
  #folder: string
  #child: ChildProcess | undefined
  /** where it answers; another place after each start */
  url = ''

  #told: Record<string, string>

  /**
   * Builds it.
   * @param told what its server is told (crash-server.mjs)
   * @throws what the build says
   */
  constructor(told: Record<string, string> = {}) {
    this.#told = told
    this.#folder = mkdtempSync(join(tmpdir(), 'parley-kill-'))
    const wrangler = join(root, 'node_modules/wrangler/bin/wrangler.js')
    const args = [wrangler, 'deploy', '--dry-run', '--outdir', join(this.#folder, 'bundle')]
    const env = { ...process.env, WRANGLER_SEND_METRICS: 'false', CI: 'true' }
    const built = spawnSync(process.execPath, args, { cwd: root, env, encoding: 'utf8' })
    if (built.status !== 0) throw new Error(built.stderr)
  }

  async boot(): Promise<void> {
    const args = [join(this.#folder, 'bundle'), join(this.#folder, 'storage')]
    const child = fork(join(import.meta.dirname, 'crash-server.mjs'), args, {
      detached: true,
      env: { ...process.env, ...this.#told },
    })
    this.#child = child
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

  /** A connection may break a moment before the process is known to be dead. @throws `error` when it is not */
  async requireDead(error: unknown): Promise<void> {
    if (this.isDead) return
    const late = new Promise((_, reject) => setTimeout(() => reject(error), 5_000))
    await Promise.race([once(this.#child!, 'exit'), late])
  }

  async remove(): Promise<void> {
    await this.kill()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
