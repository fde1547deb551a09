/** Where files are dropped, or chosen. */
import { useRef } from 'preact/hooks'
import { Button } from '../parts/button'
import { Icon } from '../parts/icon'
import { files, isOver } from './dropped'
import type { Chosen } from './files'

export function Drop({ start }: { start: (choose: () => Promise<Chosen>) => void }) {
  const single = useRef<HTMLInputElement>(null)
  const folder = useRef<HTMLInputElement>(null)
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
    <div class={isOver.value ? 'drop over' : 'drop'}>
      <span class="empty-icon">
        <Icon name="upload" />
      </span>
      <p class="drop-title">Drop a folder or files here</p>
      <p class="soft">
        Markdown, HTML, PDF, DOCX, PPTX, EPUB, XLSX, CSV, JSON, JSON Lines, notebooks, reStructuredText,
        AsciiDoc and plain text
      </p>
      <div class="drop-buttons">
        <Button label="Choose a folder" kind="primary" onClick={() => folder.current?.click()} />
        <Button label="Choose files" onClick={() => single.current?.click()} />
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
