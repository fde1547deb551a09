/** The tools that an answer called: with what, what they replied, and what the turn still waits for. */
import { Raw } from '../parts/list'
import type { RecordedTurn } from './record'

type Call = NonNullable<RecordedTurn['calls']>[number]

const WAITS = { leave: "waits for the visitor's leave", page: "waits for the visitor's page" }

/** What there is to say of how a call went; undefined where it went well. */
function faultOf({ awaits, result, failed }: Call): string | undefined {
  if (awaits) return WAITS[awaits]
  if (failed) return 'failed, or was not allowed'
  return result === undefined ? 'has no result' : undefined
}

/** Arguments as a model wrote them, on lines of their own where they are JSON. */
function spread(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

/** Nothing where there are none. */
export const Calls = ({ of = [] }: { of?: Call[] | undefined }) => (
  <>
    {of.map((call, index) => {
      const { id, name, title = name, arguments: given, result, failed } = call
      const fault = faultOf(call)
      const label = `Call ${index + 1}: ${title}`
      return (
        <details key={id} class="block frame apart">
          <summary>
            {title} {fault !== undefined && <span class="badge warn">{fault}</span>}
          </summary>
          <p class="hint">The model called the tool {name}.</p>
          <Raw name="With" text={spread(given)} label={`${label}, with`} copy={`Copy what ${title} got`} />
          {result !== undefined && (
            <Raw
              name={failed ? 'It failed' : 'It replied'}
              text={result}
              label={`${label}, reply`}
              copy={`Copy what ${title} replied`}
            />
          )}
        </details>
      )
    })}
  </>
)
