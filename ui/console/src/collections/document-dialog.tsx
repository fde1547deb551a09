/** A document: as it is stored, and in the passages that a model reads of it. */
import { useState } from 'preact/hooks'
import { Refusal, send } from '../api'
import { Button } from '../parts/button'
import { Copy } from '../parts/copy'
import { Dialog } from '../parts/dialog'
import { Raw } from '../parts/raw'
import { Problem } from '../parts/states'
import { changeDocument, EditDocument, pathOfDocument } from './edit-document'
import { Passages } from './passages'
import type { Doc } from './wire'

interface DocumentProps {
  collection: string
  document: Doc
  close: () => void
  /** it was changed or deleted; absent: it is only looked at */
  changed?: () => void
}

const VIEWS = ['As stored', 'Passages'] as const

export function DocumentDialog({ collection, document: given, close, changed }: DocumentProps) {
  const [document, setDocument] = useState(given)
  const [before, setBefore] = useState<Doc>()
  const [editing, setEditing] = useState(false)
  const [view, setView] = useState<(typeof VIEWS)[number]>('As stored')
  const [sure, setSure] = useState(false)
  const [error, setError] = useState<Refusal>()
  const text = JSON.stringify(document, null, 2)
  const saved = (now: Doc, undo?: Doc) => {
    setBefore(undo)
    setDocument(now)
    setEditing(false)
    changed?.()
  }
  const remove = async () => {
    if (!sure) return setSure(true)
    try {
      await send('DELETE', pathOfDocument(collection, document.id))
      changed?.()
      close()
    } catch (fault) {
      setError(Refusal.of(fault))
    }
  }
  if (editing) {
    return (
      <EditDocument
        collection={collection}
        document={document}
        saved={(now) => saved(now, document)}
        close={() => setEditing(false)}
      />
    )
  }
  return (
    <Dialog title={document.id} close={close} class="wide">
      <div class="dialog-body">
        <div class="page-actions">
          {VIEWS.map((each) => (
            <Button label={each} key={each} aria-pressed={each === view} onClick={() => setView(each)} />
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
      {changed && (
        <div class="dialog-foot">
          <span role="status" class="grow">
            {before && 'Saved.'}
          </span>
          {before && (
            <Button
              label="Undo"
              onClick={() =>
                changeDocument(collection, document, before).then(
                  () => saved(before),
                  (fault) => setError(Refusal.of(fault)),
                )
              }
            />
          )}
          <Button label="Edit" icon="edit" onClick={() => setEditing(true)} />
          <Button
            label={sure ? 'Delete for good' : 'Delete the document'}
            kind={sure ? 'danger' : ''}
            onClick={remove}
          />
        </div>
      )}
    </Dialog>
  )
}
