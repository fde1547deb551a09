/** A document: as it is stored, and in the passages that a model reads of it. */
import { useState } from 'preact/hooks'
import { Refusal, send } from '../api'
import { Copy } from '../parts/copy'
import { Dialog } from '../parts/dialog'
import { Raw } from '../parts/raw'
import { Problem } from '../parts/states'
import { Passages } from './passages'
import { type Doc, pathOf } from './wire'

interface DocumentProps {
  collection: string
  document: Doc
  close: () => void
  /** absent: it is only looked at */
  removed?: () => void
}

const VIEWS = ['As stored', 'Passages'] as const

export function DocumentDialog({ collection, document, close, removed }: DocumentProps) {
  const [view, setView] = useState<(typeof VIEWS)[number]>('As stored')
  const [sure, setSure] = useState(false)
  const [error, setError] = useState<Refusal>()
  const text = JSON.stringify(document, null, 2)
  const remove = async () => {
    if (!sure) return setSure(true)
    try {
      await send('DELETE', `${pathOf(collection)}/documents/${encodeURIComponent(document.id)}`)
      removed?.()
      close()
    } catch (fault) {
      setError(Refusal.of(fault))
    }
  }
  return (
    <Dialog title={document.id} close={close} class="wide">
      <div class="dialog-body">
        <div class="page-actions">
          {VIEWS.map((each) => (
            <button
              key={each}
              type="button"
              class="button"
              aria-pressed={each === view}
              onClick={() => setView(each)}
            >
              {each}
            </button>
          ))}
        </div>
        {view === 'Passages' ? (
          <Passages document={document} />
        ) : (
          <>
            <div class="message-head">
              <span>JSON</span>
              <Copy text={text} label="Copy the document" />
            </div>
            <Raw text={text} label="The document as JSON" />
          </>
        )}
      </div>
      {error && <Problem error={error} />}
      {removed && (
        <div class="dialog-foot">
          <button type="button" class={sure ? 'button danger' : 'button'} onClick={remove}>
            {sure ? 'Delete for good' : 'Delete the document'}
          </button>
        </div>
      )}
    </Dialog>
  )
}
