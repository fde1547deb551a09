/** Where files are dropped, or chosen. */
import { useRef, useState } from 'preact/hooks'
import { Icon } from '../parts/icon'
import type { Chosen } from './files'

const files = () => import('./files')

export function Drop({ start }: { start: (choose: () => Promise<Chosen>) => void }) {
  const [over, setOver] = useState(false)
  const single = useRef<HTMLInputElement>(null)
  const folder = useRef<HTMLInputElement>(null)
  const drop = (event: DragEvent) => {
    event.preventDefault()
    setOver(false)
    // What was dropped is gone when the event is over.
    const entries = Array.from(event.dataTransfer?.items ?? []).flatMap((item) => {
      const entry = item.webkitGetAsEntry()
      return entry ? [entry] : []
    })
    const given = Array.from(event.dataTransfer?.files ?? [])
    if (entries.length > 0) start(async () => (await files()).ofDrop(entries))
    else if (given.length > 0) start(async () => (await files()).ofFiles(given))
  }
  const choose = (input: HTMLInputElement, isFolder: boolean) => {
    const given = Array.from(input.files ?? [])
    input.value = ''
    if (given.length === 0) return
    start(async () => {
      const { ofFiles, ofFolder } = await files()
      return isFolder ? ofFolder(given) : ofFiles(given)
    })
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the buttons inside do the same without a mouse
    <div
      class={over ? 'drop over' : 'drop'}
      onDragOver={(event) => {
        event.preventDefault()
        setOver(true)
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <span class="empty-icon">
        <Icon name="upload" />
      </span>
      <p class="drop-title">Drop a folder or files here</p>
      <p class="soft">Markdown, HTML, CSV, JSON, JSON Lines, PDF, DOCX, reStructuredText and plain text</p>
      <div class="drop-buttons">
        <button type="button" class="button primary" onClick={() => folder.current?.click()}>
          Choose a folder
        </button>
        <button type="button" class="button" onClick={() => single.current?.click()}>
          Choose files
        </button>
      </div>
      <input
        ref={single}
        type="file"
        multiple
        hidden
        aria-label="Files"
        onChange={(event) => choose(event.currentTarget, false)}
      />
      <input
        ref={folder}
        type="file"
        hidden
        aria-label="A folder"
        {...{ webkitdirectory: true }}
        onChange={(event) => choose(event.currentTarget, true)}
      />
    </div>
  )
}
