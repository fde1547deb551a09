/** Import: files that are dropped or chosen, read in the browser by the command line's own readers. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { place, to } from '../address'
import { Refusal } from '../api'
import { Button } from '../parts/button'
import { Icon } from '../parts/icon'
import { Page } from '../parts/page'
import { Problem } from '../parts/states'
import { dropped, files, isOver } from './dropped'
import type { Chosen } from './files'
import { Preview } from './preview'

/** The readers and what they need are heavy: they are loaded when there is something to read. */
export type Runner = typeof import('./run')

type State =
  | { step: 'choose'; error?: Refusal }
  | { step: 'reading'; chosen: Chosen; count: number }
  | { step: 'read'; runner: Runner; content: Awaited<ReturnType<Runner['readFiles']>>; chosen: Chosen }

export default function ImportPage() {
  const into = place.value.query.get('into') ?? ''
  const [state, setState] = useState<State>({ step: 'choose' })
  const start = async (choose: () => Promise<Chosen>) => {
    try {
      const chosen = await choose()
      if (chosen.files.length === 0) {
        const [name] = chosen.unreadable
        throw new Refusal(
          0,
          name === undefined
            ? 'There is no file in it that can be read. Markdown, HTML, PDF, DOCX, PPTX, EPUB, XLSX, CSV, JSON and text can.'
            : `${name} cannot be read. Markdown, HTML, PDF, DOCX, PPTX, EPUB, XLSX, CSV, JSON and text files can.`,
        )
      }
      setState({ step: 'reading', chosen, count: 0 })
      const runner = await import('./run')
      const content = await runner.readFiles(chosen, (count) => setState({ step: 'reading', chosen, count }))
      setState({ step: 'read', runner, content, chosen })
    } catch (error) {
      setState({ step: 'choose', error: Refusal.of(error) })
    }
  }
  // biome-ignore lint/correctness/useExhaustiveDependencies: what waits is taken once
  useEffect(() => {
    const choose = dropped.value
    if (!choose) return
    dropped.value = undefined
    start(choose)
  }, [dropped.value])
  return (
    <Page
      title="Import files"
      up={
        into === ''
          ? { title: 'Collections', href: to(['collections']) }
          : { title: into, href: to(['collections', into]) }
      }
      lead="Files are read in your browser, by the readers of the command line. Only what has changed is sent."
    >
      {state.step === 'choose' && (
        <>
          {state.error && <Problem error={state.error} />}
          <Drop start={start} />
          <p class="hint">
            Of a folder everything in it is read, but for hidden files, node_modules and what a .gitignore
            names. Importing the same folder again updates what changed. For a website or a schedule use{' '}
            <code>npm run parley -- import</code>.
          </p>
        </>
      )}
      {state.step === 'reading' && (
        <div class="panel-card frame" role="status">
          <p>
            <Icon name="file" /> Reading {state.chosen.title}: {state.count} of {state.chosen.files.length}{' '}
            files
          </p>
          <progress max={state.chosen.files.length} value={state.count} aria-label="Files read" />
        </div>
      )}
      {state.step === 'read' && (
        <Preview
          runner={state.runner}
          content={state.content}
          title={state.chosen.title}
          unreadable={state.chosen.unreadable}
          into={into}
          again={() => setState({ step: 'choose' })}
        />
      )}
    </Page>
  )
}

/** Where files are dropped, or chosen. */
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
      <div class="line">
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
