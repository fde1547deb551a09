/** Follows a guide to the letter: writes its files, runs its commands through npm, and compares what they print. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { expect } from 'vitest'

export const ROOT = join(import.meta.dirname, '../..')
/** Where guides find Parley. */
const LOCAL = 'http://localhost:8108'

interface Block {
  /** the paragraph before it */
  before: string
  language: string
  code: string
}

const blocksOf = (markdown: string): Block[] =>
  [...markdown.matchAll(/(?:([^\n]+)\n\n)?```(\w*)\n(.*?)```(?=\n)/gs)].map(
    ([, before = '', language = '', code = '']) => ({ before, language, code }),
  )

/** What differs from run to run, made equal. */
const equalized = (text: string) =>
  text
    .replace(/\bDone in [\d.]+ s\b/g, 'Done in N s')
    .replace(/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g, 'CONVERSATION')
    .replace(/(a key for pages: )\w+/g, '$1KEY')

/** Expects each line that a guide shows, in this order; other lines may be in between, and `...` ends a line early. */
function expectPrinted(shown: string, printed: string): void {
  const lines = equalized(printed).split('\n')
  let from = 0
  for (const line of equalized(shown).trimEnd().split('\n')) {
    const start = line.replace(/\s*\.\.\.$/, '')
    const at = lines.findIndex(
      (each, index) => index >= from && (start === line ? each === line : each.startsWith(start)),
    )
    expect(at, `"${line}" is not printed in its place:\n${printed}`).toBeGreaterThanOrEqual(from)
    from = at + 1
  }
}

export interface Followed {
  /** how many lines of commands were run */
  commands: number
  /** how many lines of output were compared */
  shown: number
}

export class GuideReader {
  /** where the guide's files are written and its commands run */
  readonly folder = mkdtempSync(join(tmpdir(), 'parley-guide-'))
  #parley: string
  #running: ChildProcess[] = []

  /** @param parley where Parley answers */
  constructor(parley: string) {
    this.#parley = parley
    // The guides' commands run in the project's folder. This one has its scripts and programs, and none of its files.
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    const own = (name: string) => scripts[name].replaceAll(/(?:\.\/)?scripts\//g, `${ROOT}/scripts/`)
    const copied = { parley: own('parley'), deploy: own('deploy') }
    writeFileSync(join(this.folder, 'package.json'), JSON.stringify({ private: true, scripts: copied }))
    symlinkSync(join(ROOT, 'node_modules'), join(this.folder, 'node_modules'))
  }

  /** Ends what was left running, and removes the files. */
  close(): void {
    for (const { pid, exitCode } of this.#running)
      if (pid !== undefined && exitCode === null) process.kill(-pid)
    rmSync(this.folder, { recursive: true, force: true })
  }

  #spawn(commands: string): ChildProcess {
    return spawn('sh', ['-e', '-c', `exec 2>&1\n${commands}`], {
      cwd: this.folder,
      detached: true,
      env: {
        ...process.env,
        PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}`,
        PARLEY_URL: this.#parley,
        PARLEY_API_KEY: 'xyz',
      },
      // esbuild serves for as long as its input is open.
      stdio: ['pipe', 'pipe', 'inherit'],
    })
  }

  /** @returns what commands print, both streams in order @throws when one of them fails */
  async #run(commands: string): Promise<string> {
    const child = this.#spawn(commands)
    child.stdin?.end()
    let printed = ''
    child.stdout?.on('data', (data) => {
      printed += data
    })
    const code = await new Promise((done) => child.once('close', done))
    expect(code, printed).toBe(0)
    return printed
  }

  /**
   * Does what a guide says, from its first file or command on, and compares each output that it shows.
   * @param guide its path below docs/
   * @param names what stands in the guide for something of this test, such as an address, and what it is here
   * @param left beginnings of blocks that are not followed
   */
  async follow(guide: string, names: Record<string, string> = {}, left: string[] = []): Promise<Followed> {
    const here = { ...names, [LOCAL]: this.#parley }
    const replaced = (text: string, pairs: [string, string][]) =>
      pairs.reduce((all, [from, to]) => all.replaceAll(from, to), text)
    const inward = (text: string) => replaced(text, Object.entries(here))
    const outward = (text: string) =>
      replaced(
        text,
        Object.entries(here).map(([from, to]) => [to, from]),
      )
    const done = { commands: 0, shown: 0 }
    let exported = ''
    let printed = ''
    let conversation = ''
    let key = ''
    for (const { before, language, code } of blocksOf(readFileSync(join(ROOT, 'docs', guide), 'utf8'))) {
      if (left.some((start) => code.startsWith(start))) continue
      const [, file] = /Save this as `([^`]+)`(?:, with .*)?:$/.exec(before) ?? []
      if (file !== undefined) {
        mkdirSync(dirname(join(this.folder, file)), { recursive: true })
        writeFileSync(join(this.folder, file), inward(code).replaceAll('PAGE_KEY', key))
      } else if (language === 'sh') {
        const commands = inward(code).replaceAll('CONVERSATION', conversation)
        printed = outward(await this.#run(exported + commands))
        exported += commands.match(/^export .*\n/gm)?.join('') ?? ''
        conversation = /--conversation ([\da-f-]{36})/.exec(printed)?.[1] ?? conversation
        key = /a key for pages: (\w+)/.exec(printed)?.[1] ?? key
        done.commands += code.trimEnd().split('\n').length
      } else if (language !== '') {
        // A piece of a program, to read.
      } else if (code === 'npm ci\nnpm start\n') {
        // How Parley is started, which this test has done.
      } else if (before.endsWith('leave it running:')) {
        this.#running.push(this.#spawn(inward(code)))
        done.commands += 1
      } else {
        expectPrinted(code, printed)
        done.shown += code.trimEnd().split('\n').length
      }
    }
    return done
  }
}
