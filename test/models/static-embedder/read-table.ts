/** The built-in embedder's table, as it lies among the assets. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { StaticTable } from '../../../src/models/static-embedder/reader'

const PATH = join(import.meta.dirname, '../../../ui/models/minilm-l6-static.bin')

export function tableBytes(): ArrayBuffer {
  const { buffer, byteOffset, byteLength } = readFileSync(PATH)
  return buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer
}

export const readTable = (): StaticTable => new StaticTable(tableBytes())

/** The table's word pieces, in order. */
export function readVocabulary(): string[] {
  const bytes = tableBytes()
  const view = new DataView(bytes)
  const length = view.getUint32(4, true)
  const { vocabulary } = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 8, length)))
  const start = Math.ceil((8 + length) / 4) * 4
  return new TextDecoder().decode(new Uint8Array(bytes, start, vocabulary)).split('\n')
}
