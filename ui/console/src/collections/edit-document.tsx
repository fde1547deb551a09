/** A document to be changed: its texts in fields of their own, and the rest of it as JSON. */
import { useState } from 'preact/hooks'
import { Refusal, send } from '../api'
import { Dialog } from '../parts/dialog'
import { changesOf, Form, objectIn, TextField } from '../parts/form'
import { type Doc, pathOf } from './wire'

/** Longer texts have a field of several lines. */
const LINE = 80

export const pathOfDocument = (collection: string, id: string): string =>
  `${pathOf(collection)}/documents/${encodeURIComponent(id)}`

/** Only what changed is sent: vectors that are not shown stay. @throws Refusal */
export const changeDocument = (collection: string, before: Doc, after: Doc): Promise<unknown> =>
  send('PATCH', pathOfDocument(collection, before.id), changesOf(before, after))

interface EditProps {
  collection: string
  document: Doc
  saved: (document: Doc) => void
  close: () => void
}

export function EditDocument({ collection, document, saved, close }: EditProps) {
  const { id, ...properties } = document
  const all = Object.entries(properties)
  const rest = Object.fromEntries(all.filter(([, value]) => typeof value !== 'string'))
  const [texts, setTexts] = useState<Record<string, string>>(
    Object.fromEntries(all.filter((entry): entry is [string, string] => typeof entry[1] === 'string')),
  )
  const [others, setOthers] = useState(JSON.stringify(rest, null, 2))
  const save = async () => {
    const other = objectIn(others)
    if ('id' in other) throw new Refusal(0, 'The id of a document cannot be changed.')
    const after = { id, ...texts, ...other }
    await changeDocument(collection, document, after)
    saved(after)
  }
  return (
    <Dialog title={`Edit ${id}`} close={close} class="wide">
      <Form action="Save" save={save}>
        {Object.entries(texts).map(([name, text]) => (
          <TextField
            key={name}
            label={name}
            value={text}
            {...(String(properties[name]).length > LINE && { rows: 12 })}
            change={(typed) => setTexts((before) => ({ ...before, [name]: typed }))}
          />
        ))}
        <details open={all.length > 0 && Object.keys(texts).length === 0}>
          <summary>Other properties</summary>
          <TextField
            label="JSON"
            rows={6}
            code
            required
            value={others}
            hint="A property that you remove is taken away. Vectors are made anew by themselves."
            change={setOthers}
          />
        </details>
      </Form>
    </Dialog>
  )
}
