/** Git archives that are unpacked as they come: which files they give, and what those may not do that want to fill a machine. */
import { gzipSync } from 'node:zlib'
import { packTar, type TarHeader } from 'modern-tar'
import { expect, test } from 'vitest'
import { fateOf, filesInArchive, unpacked } from '../../../scripts/parley/import/files.mjs'

type Entry = [name: string, body?: string, header?: Partial<TarHeader>]
const packed = async (...entries: Entry[]) =>
  gzipSync(
    await packTar(
      entries.map(([name, body = '', header = {}]) => ({
        header: { name, size: Buffer.byteLength(body), type: 'file', ...header } as TarHeader,
        body,
      })),
    ),
  )
const streamOf = (bytes: Uint8Array, piece = bytes.length) => {
  let at = 0
  return new ReadableStream<Uint8Array>({
    pull: (controller) => {
      controller.enqueue(bytes.subarray(at, at + piece))
      at += piece
      if (at >= bytes.length) controller.close()
    },
  })
}
const read = async (
  bytes: Uint8Array,
  piece?: number,
  wants = (path: string, _size: number) => path !== '',
) => {
  const files: [string, string][] = []
  for await (const { path, bytes: own } of filesInArchive(streamOf(bytes, piece), wants))
    files.push([path, new TextDecoder().decode(own)])
  return files
}

test('the folder that holds all of an archive is no part of paths, also where they are long; links are left out', async () => {
  const long = `${'long-folder/'.repeat(20)}a.md`
  const bytes = await packed(
    ['guide-main/', '', { type: 'directory' }],
    ['guide-main/README.md', '# Guide'],
    ['guide-main/link.md', '', { type: 'symlink', linkname: 'README.md' }],
    [`guide-main/${long}`, 'ü'.repeat(3_000)],
    ['guide-main/empty.md'],
  )
  const expected = [
    ['README.md', '# Guide'],
    [long, 'ü'.repeat(3_000)],
    ['empty.md', ''],
  ]
  for (const piece of [bytes.length, 7, 1]) expect(await read(bytes, piece)).toEqual(expected)
  // What has no such folder keeps its own.
  expect(await read(await packed(['docs/a.md', 'A'], ['docs/b.md', 'B']))).toEqual([
    ['docs/a.md', 'A'],
    ['docs/b.md', 'B'],
  ])
})

test('what unpacks to more than it may ends there, and nobody holds more than was read', async () => {
  const zeros = gzipSync(new Uint8Array(64 << 20))
  let pulled = 0
  const source = new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        pulled += 1
        controller.enqueue(zeros)
      },
    },
    { highWaterMark: 0 },
  )
  const reader = unpacked(source, 1 << 30).getReader()
  const { value } = await reader.read()
  expect(value?.length).toBeLessThan(8 << 20)
  expect(pulled).toBe(1)
  await reader.cancel()
  await expect(new Response(unpacked(streamOf(zeros), 32 << 20)).arrayBuffer()).rejects.toThrow(
    'it unpacks to more than 32 MiB',
  )
})

test('an archive of a million entries, and one that states more than it holds, end with an error', async () => {
  const tar = await packTar([{ header: { name: 'empty.bin', size: 0, type: 'file' } as TarHeader }])
  const many = gzipSync(Buffer.concat(Array.from({ length: 2_000 }, () => tar.subarray(0, 512))))
  const endless = new ReadableStream<Uint8Array>({ pull: (controller) => controller.enqueue(many) })
  await expect(filesInArchive(endless, () => false).next()).rejects.toThrow('more than 200000 entries')

  const header = tar.slice(0, 512)
  const write = (text: string, at: number) => header.set(Buffer.from(text), at)
  write(`${(5 * 2 ** 30).toString(8).padStart(11, '0')} `, 124)
  write(' '.repeat(8), 148)
  write(
    `${header
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, '0')}\0 `,
    148,
  )
  const sizes: number[] = []
  const claims = gzipSync(Buffer.concat([header, Buffer.alloc(1 << 20)]))
  await expect(read(claims, undefined, (_, size) => sizes.push(size) < 0)).rejects.toThrow('truncated')
  expect(sizes).toEqual([5 * 2 ** 30])
  for (const bytes of [
    Buffer.from('no gzip'),
    (await packed(['a.md', 'A'])).subarray(0, 60),
    gzipSync('no tar'.repeat(300)),
  ])
    await expect(read(bytes)).rejects.toThrow()
})

test('what becomes of a file is said by its path', () => {
  for (const path of ['README.md', 'docs/a.MDX', 'a b/c.htm', 'notes.txt'])
    expect(fateOf(path)).toEqual({ isRead: true })
  for (const path of [
    '.hidden.md',
    '.git/a.md',
    'a//b.md',
    '/etc/a.md',
    'node_modules/a/README.md',
    '404.html',
    'a.ts',
    'md',
  ])
    expect(fateOf(path)).toEqual({ isRead: false })
  for (const path of ['a.pdf', 'b.rst', '../a.md', 'a/../../b.md'])
    expect(fateOf(path)).toHaveProperty('error')
})
