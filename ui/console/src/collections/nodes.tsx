/** How the nodes of a collection's cluster answer. */
import { useRead } from '../api'
import { Button } from '../parts/button'
import { duration, many } from '../parts/format'
import { Shown } from '../parts/states'
import { pathOf } from './wire'

interface NodeHealth {
  url: string
  answers: boolean
  took_ms: number
  error?: string
}

export function Nodes({ name }: { name: string }) {
  const loaded = useRead<{ nodes: NodeHealth[] }>(`${pathOf(name)}/nodes`)
  const nodes = loaded.data?.nodes ?? []
  if (loaded.data && nodes.length === 0) return null
  const down = nodes.filter(({ answers }) => !answers).length
  return (
    <section class="nodes" aria-label="Nodes of the cluster">
      <Shown of={loaded} lines={1} label="Asking the nodes">
        {() => (
          <details open={down > 0}>
            <summary>
              {down === 0 ? (
                <span class="badge good">
                  {nodes.length === 1 ? 'The node answers' : `All ${nodes.length} nodes answer`}
                </span>
              ) : (
                <span class="badge error">
                  {down} of {many(nodes.length, 'node')} {down === 1 ? 'does' : 'do'} not answer
                </span>
              )}
            </summary>
            <ul class="cuts">
              {nodes.map(({ url, answers, took_ms, error }) => (
                <li key={url}>
                  <span class="hit-title">{url}</span>
                  <span class={answers ? 'soft' : 'bad'}>{answers ? duration(took_ms) : error}</span>
                </li>
              ))}
            </ul>
            <Button label="Ask again" icon="again" onClick={loaded.reload} />
          </details>
        )}
      </Shown>
    </section>
  )
}
