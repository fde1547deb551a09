/** The fields of a collection, and what its searches go by. */
import { useState } from 'preact/hooks'
import { send } from '../api'
import { Confirm } from '../parts/dialog'
import { changesOf, JsonDialog } from '../parts/form'
import { Icon } from '../parts/icon'
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
      <div class="page-actions">
        <button type="button" class="button" onClick={() => setOpen('sets')}>
          Synonyms and curations
        </button>
        <button type="button" class="button" onClick={() => setOpen('field')}>
          <Icon name="plus" />
          Add a field
        </button>
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
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached with the keyboard */}
      <section class="table-scroll" tabIndex={0} aria-label={`Fields of ${name}`}>
        <table class="table">
          <thead>
            <tr>
              <th scope="col">Field</th>
              <th scope="col">Type</th>
              <th scope="col">Options</th>
              {remove && (
                <th scope="col">
                  <span class="hidden">Remove</span>
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {fields.map((field) => (
              <tr key={field.name}>
                <th scope="row">
                  <code>{field.name}</code>
                </th>
                <td>
                  <code>{field.type}</code>
                </td>
                <td>
                  <span class="badges">
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
                    <button
                      type="button"
                      class="tool"
                      aria-label={`Remove the field ${field.name}`}
                      title="Remove"
                      onClick={() => setRemoving(field.name)}
                    >
                      <Icon name="bin" />
                    </button>
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
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
