/** The fields of a collection, and what its searches go by. */
import { useState } from 'preact/hooks'
import { send } from '../api'
import { Button, Tool } from '../parts/button'
import { Confirm, changesOf, JsonDialog } from '../parts/form'
import { Table } from '../parts/list'
import { type Collection, pathOf } from './wire'

const NEW_FIELD = { name: '', type: 'string', optional: true, facet: false }

/** The schema, to be changed. */
export function EditSchema({ collection, changed }: { collection: Collection; changed: () => void }) {
  const { name, synonym_sets = [], curation_sets = [] } = collection
  const sets = { synonym_sets, curation_sets }
  const [open, setOpen] = useState<'field' | 'sets'>()
  const alter = async (change: object) => {
    await send('PATCH', pathOf(name), change)
    changed()
  }
  const close = () => setOpen(undefined)
  return (
    <>
      <div class="line">
        <Button label="Synonyms and curations" onClick={() => setOpen('sets')} />
        <Button label="Add a field" icon="plus" onClick={() => setOpen('field')} />
      </div>
      <Schema collection={collection} remove={(field) => alter({ fields: [{ name: field, drop: true }] })} />
      {open === 'field' && (
        <JsonDialog
          title="Add a field"
          value={NEW_FIELD}
          hint="Documents that are there have no value in it, so it is optional. One with embed gets vectors of other fields."
          save={(field) => alter({ fields: [field] })}
          close={close}
        />
      )}
      {open === 'sets' && (
        <JsonDialog
          title="Synonyms and curations"
          value={sets}
          hint="Names of sets, which are made under “Search rules”."
          save={(wanted) => alter(changesOf(sets, wanted))}
          close={close}
        />
      )}
    </>
  )
}

interface SchemaProps {
  collection: Collection
  /** takes a field away; absent: it is only looked at */
  remove?: (field: string) => Promise<unknown>
}

export function Schema({ collection: { name, fields }, remove }: SchemaProps) {
  const [removing, setRemoving] = useState<string>()
  return (
    <>
      <Table
        label={`Fields of ${name}`}
        numbers={3}
        head={[
          'Field',
          'Type',
          'Options',
          remove && (
            <span key="remove" class="hidden">
              Remove
            </span>
          ),
        ]}
      >
        {fields.map((field) => (
          <tr key={field.name}>
            <th scope="row">
              <code>{field.name}</code>
            </th>
            <td>
              <code>{field.type}</code>
            </td>
            <td>
              <span class="line">
                {field.embed && (
                  <span class="badge good" title={field.embed.served_by}>
                    vectors of {field.embed.from.join(', ')} by {field.embed.model_config.model_name}
                  </span>
                )}
                {field.num_dim !== undefined && <span class="badge">{field.num_dim} dimensions</span>}
                {field.facet && <span class="badge">facet</span>}
                {field.optional && <span class="badge">optional</span>}
                {!field.index && <span class="badge">stored only</span>}
              </span>
            </td>
            {remove && (
              <td class="number-cell">
                <Tool
                  icon="bin"
                  label="Remove"
                  of={`the field ${field.name}`}
                  onClick={() => setRemoving(field.name)}
                />
              </td>
            )}
          </tr>
        ))}
      </Table>
      {remove && removing !== undefined && (
        <Confirm
          title={`Remove the field ${removing}?`}
          action="Remove the field"
          run={() => remove(removing)}
          close={() => setRemoving(undefined)}
        >
          <p>Searches, filters and vectors that need it are gone. Import again to have it back.</p>
        </Confirm>
      )}
    </>
  )
}
