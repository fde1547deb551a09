/** Files that somebody drops on the page or chooses, as the command line names those of a folder. */
import { type Entry, type Folder, filesOf } from '../../../../scripts/parley/import/tree.mjs'
import { isReadable } from '../../../../scripts/parley/read/index.mjs'

/** What is to be imported, and what it is called: as the folder, or the one file. */
export interface Chosen {
  title: string
  /** `source`: the name that a file's import goes by, that of its folder, or its own */
  files: { name: string; source: string; file: File }[]
  /** names of files that cannot be read: of those that were chosen one by one, or of a folder's documents */
  unreadable: string[]
}

const text = (file: File): Promise<string> => file.text()

/** Files that were chosen one by one, as the command line takes several paths. */
export function ofFiles(files: readonly File[]): Chosen {
  const readable = files.filter(({ name }) => isReadable(name))
  return {
    title: files.length === 1 ? (files[0]?.name ?? 'files') : 'files',
    files: readable.map((file) => ({ name: file.name, source: file.name, file })),
    unreadable: files.filter(({ name }) => !isReadable(name)).map(({ name }) => name),
  }
}

/** The files of a folder that was chosen: the browser gives them with their paths. */
export async function ofFolder(files: readonly File[]): Promise<Chosen> {
  const paths = files.map((file) => ({ file, steps: file.webkitRelativePath.split('/') }))
  const [source = 'files'] = paths[0]?.steps ?? []
  const inside = paths.map(({ file, steps: [, ...below] }) => ({ file, steps: below }))
  return inFolder(source, await filesOf(folderAt(inside)))
}

/** @param files with the steps to each of them from the folder on */
const folderAt = (files: readonly { file: File; steps: string[] }[]): Folder<File> => ({
  entries: async () =>
    [...Map.groupBy(files, ({ steps: [name = ''] }) => name)].map(([name, all]): Entry<File> => {
      const below = all.map(({ file, steps: [, ...others] }) => ({ file, steps: others }))
      const [first] = below
      return first?.steps.length === 0 ? { name, file: first.file } : { name, folder: folderAt(below) }
    }),
  text,
})

const inFolder = (
  source: string,
  { files, unreadable }: { files: { name: string; file: File }[]; unreadable: string[] },
): Chosen => ({ title: source, files: files.map((each) => ({ ...each, source })), unreadable })

/** What was dropped: one folder, or files. @throws Error where it is more than one folder */
export async function ofDrop(items: readonly FileSystemEntry[]): Promise<Chosen> {
  const [first] = items
  if (items.some(({ isDirectory }) => isDirectory)) {
    if (items.length > 1 || !first) throw new Error('Drop one folder at a time, or several files.')
    return inFolder(first.name, await filesOf(folderOf(first as FileSystemDirectoryEntry)))
  }
  return ofFiles(await Promise.all(items.map((item) => fileOf(item as FileSystemFileEntry))))
}

const fileOf = (entry: FileSystemFileEntry): Promise<File> =>
  new Promise((resolve, reject) => entry.file(resolve, reject))

const folderOf = (entry: FileSystemDirectoryEntry): Folder<File> => ({
  async entries() {
    const reader = entry.createReader()
    const found: Entry<File>[] = []
    for (;;) {
      // A browser lists a hundred at a time.
      const some = await new Promise<FileSystemEntry[]>((resolve, reject) =>
        reader.readEntries(resolve, reject),
      )
      if (some.length === 0) return found
      for (const each of some) {
        found.push(
          each.isDirectory
            ? { name: each.name, folder: folderOf(each as FileSystemDirectoryEntry) }
            : { name: each.name, file: await fileOf(each as FileSystemFileEntry) },
        )
      }
    }
  },
  text,
})
