/** Reads a secret without its becoming an argument, which a shell's history and the list of processes show. */
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { EXIT, Failure } from '../failure.mjs'

/** The variable that is read where no other is named. */
export const SECRET_VARIABLE = 'PARLEY_CLUSTER_SECRET'

/**
 * The secret of a cluster: from a file, a variable of the environment, or a terminal, which does not show it.
 * @param {{ secretFile?: string, secretEnv?: string }} options
 * @param {string} asked what a terminal asks for
 * @returns {Promise<string | undefined>} undefined if none is given
 * @throws Failure for a file that cannot be read, and for a variable that was named and is not set
 */
export async function readSecret({ secretFile, secretEnv }, asked) {
  if (secretFile !== undefined) {
    const text = await readFile(secretFile, 'utf8').catch(() => {
      throw new Failure(EXIT.usage, `The file ${secretFile} of --secret-file cannot be read.`)
    })
    return text.trim() || undefined
  }
  const given = process.env[secretEnv ?? SECRET_VARIABLE]
  if (given) return given
  if (secretEnv !== undefined) {
    throw new Failure(EXIT.usage, `The variable ${secretEnv} of --secret-env is not set.`)
  }
  return process.stdin.isTTY ? (await typed(asked)) || undefined : undefined
}

/** @param {string} asked */
async function typed(asked) {
  process.stderr.write(`${asked}: `)
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const terminal = createInterface({ input: process.stdin, output: nowhere, terminal: true })
  try {
    return (await terminal.question('')).trim()
  } finally {
    terminal.close()
    process.stderr.write('\n')
  }
}
