/** The fields of a collection. */
import type { Collection } from './wire'

export function Schema({ collection: { name, fields } }: { collection: Collection }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached with the keyboard
    <section class="table-scroll" tabIndex={0} aria-label={`Fields of ${name}`}>
      <table class="table">
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">Type</th>
            <th scope="col">Options</th>
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
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
