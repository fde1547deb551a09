/** What a move has done, in a file, so that it goes on after a break. */
import { appendFile, readFile, rm, writeFile } from 'node:fs/promises'
import { EXIT, Failure } from '../failure.mjs'

/**
 * @typedef {object} Head
 * @property {string} url of the server
 * @property {string} collection
 * @property {string} to the type of the engine
 * @property {string} from where the collection is now
 */

export class Journal {
  /** documents that the target has, by their ids @type {Map<string, string>} */
  hashes = new Map()
  /** whether the collections have changed places */
  switched = false
  #file

  /** @param {string} file */
  constructor(file) {
    this.#file = file
  }

  /**
   * Reads what was done, or begins.
   * @param {Head} head
   * @returns {Promise<boolean>} whether there is something to go on with
   * @throws Failure for the journal of another move
   */
  async open(head) {
    const text = await readFile(this.#file, 'utf8').catch(() => '')
    // A line that was cut off by a break is of documents that are sent again.
    const whole = text.slice(0, text.lastIndexOf('\n') + 1)
    if (whole === '') {
      await writeFile(this.#file, `${JSON.stringify(head)}\n`)
      return false
    }
    if (whole !== text) await writeFile(this.#file, whole)
    const [first = '', ...lines] = whole.trimEnd().split('\n')
    const { from, ...move } = JSON.parse(first)
    if (JSON.stringify({ ...move, from: head.from }) !== JSON.stringify(head)) {
      throw new Failure(
        EXIT.usage,
        `${this.#file} belongs to another move: ${first}. Move or delete the file.`,
      )
    }
    for (const line of lines) {
      const [id, hash] = JSON.parse(line)
      if (id === SWITCHED) this.switched = true
      else if (hash === null) this.hashes.delete(id)
      else this.hashes.set(id, hash)
    }
    // The switch may have happened just before the break.
    if (from !== head.from) this.switched = true
    return true
  }

  /** @param {[string, string | null][]} entries null: the document is gone */
  async keep(entries) {
    for (const [id, hash] of entries) {
      if (hash === null) this.hashes.delete(id)
      else this.hashes.set(id, hash)
    }
    await appendFile(this.#file, entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''))
  }

  async keepSwitched() {
    this.switched = true
    await appendFile(this.#file, `${JSON.stringify([SWITCHED, ''])}\n`)
  }

  async remove() {
    await rm(this.#file, { force: true })
  }
}

/** In the place of an id. No document has a number as its id. */
const SWITCHED = 0
