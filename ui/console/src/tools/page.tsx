/** Tools: what the models of assistants may look up or do, by an HTTP request, an MCP server, or a function of the page. */
import { useState } from 'preact/hooks'
import type { InferOutput } from 'valibot'
import type * as responses from '../../../../src/api/parley/response-schemas'
import { mapped, Refusal, send, useRead } from '../api'
import { Dialog, Form, given, linesIn, objectIn, optionsOf, useDraft } from '../parts/form'
import { many } from '../parts/format'
import { ListPage } from '../parts/list'
import { Badges } from '../parts/page'

export type Tool = InferOutput<typeof responses.Tool>
type Kind = 'http' | 'mcp' | 'page'

const KINDS: Record<Kind, string> = {
  http: 'HTTP request',
  mcp: 'MCP server',
  page: "Function of the visitor's page",
}
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
/** When visitors are asked: in the form, and of a tool of the list. */
const LEAVES = {
  each: ['Before each call', 'asks before each call'],
  once: ['Once in a conversation', 'asks once in a conversation'],
  never: ['Never: it changes nothing', 'never asks'],
} as const

const kindOf = ({ http, mcp }: Tool): Kind => (http ? 'http' : mcp ? 'mcp' : 'page')
const pathOf = (name: string): string => `/tools/${encodeURIComponent(name)}`

export default function Tools() {
  const list = useRead<{ tools: Tool[] }>('/tools')
  return (
    <ListPage
      title="Tools"
      lead="What the models of assistants may look up or do while they answer. The form of an assistant chooses from them."
      list={mapped(list, ({ tools }) => tools)}
      empty={{
        icon: 'tools',
        title: 'No tools yet',
        text: 'Make one, such as a look at the stock or a booking, and choose it in an assistant.',
      }}
      kind="tool"
      form={(close) => <ToolDialog close={close} />}
      edit={(each, close) => <ToolDialog of={each} close={close} />}
      item={(each) => ({
        name: each.name,
        about: [each.title, KINDS[kindOf(each)], (each.http ?? each.mcp)?.url].filter(Boolean).join(' · '),
        path: pathOf(each.name),
        says: 'Assistants that list it answer without it.',
        children: (
          <>
            {each.mcp && <Listed of={each.mcp.tools} />}
            {!each.page && <Badges of={[LEAVES[each.leave][1]]} />}
          </>
        ),
      })}
    />
  )
}

/** The tools of an MCP server. */
const Listed = ({ of }: { of: NonNullable<Tool['mcp']>['tools'] }) => (
  <details>
    <summary>{many(of.length, 'tool')}</summary>
    <ul class="faults pile">
      {of.map(({ name, title, readOnly }) => (
        <li key={name} class="line">
          <span>{title ?? name}</span>
          {title !== undefined && <code class="soft">{name}</code>}
          <Badges of={[readOnly ? 'reads only' : 'may change things']} />
        </li>
      ))}
    </ul>
  </details>
)

const draftOf = (of: Tool | undefined) => ({
  name: of?.name ?? '',
  kind: of ? kindOf(of) : ('http' as Kind),
  title: of?.title ?? '',
  description: of?.description ?? '',
  parameters: of?.parameters ? JSON.stringify(of.parameters, null, 2) : '',
  leave: of?.leave ?? 'each',
  method: of?.http?.method ?? 'GET',
  url: (of?.http ?? of?.mcp)?.url ?? '',
  body: of?.http?.body ?? '',
  tools: of?.mcp?.tools.map(({ name }) => name).join('\n') ?? '',
  headers: Object.entries(of?.headers ?? {})
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n'),
})
type Draft = ReturnType<typeof draftOf>

/** Reads a field. @throws Refusal that begins with its name, as those of the server do */
function readAt<T>(field: keyof Draft, read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw new Refusal(0, `\`${field}\`: ${Refusal.of(error).message}`)
  }
}

/** @throws Refusal for a line that is no header */
const headersIn = (text: string): Record<string, string> =>
  Object.fromEntries(
    linesIn(text).map((line) => {
      const [, name = '', value = ''] = /^([^\s:]+):\s*(.+)$/.exec(line) ?? []
      if (name === '') throw new Refusal(0, `“${line}” is no header. Write it as “name: value”.`)
      return [name, value]
    }),
  )

/** The body of PUT /tools/{name}. What is left empty is left out. @throws Refusal */
function bodyOf(draft: Draft): object {
  const { kind, title, description, parameters, method, url, body, leave } = draft
  const schema = () => (parameters.trim() === '' ? undefined : objectIn(parameters))
  return given({
    title,
    ...(kind !== 'mcp' && { description, parameters: readAt('parameters', schema) }),
    ...(kind !== 'page' && { leave, headers: readAt('headers', () => headersIn(draft.headers)) }),
    ...(kind === 'http' && { http: given({ method, url, body: method === 'GET' ? '' : body }) }),
    ...(kind === 'mcp' && { mcp: given({ url, tools: linesIn(draft.tools) }) }),
    ...(kind === 'page' && { page: true }),
  })
}

/** The field that a refusal begins with the name of, such as `url` of `http.url`, and what it says of that. */
function faultIn(message: string, draft: Draft): { [Field in keyof Draft]?: string } | undefined {
  const [, place = '', said = message] = /^`([^`]+)`(?:: (.*))?/s.exec(message) ?? []
  const [field = '', part] = place.replace(/^(http|mcp)\./, '').split('.')
  // Of several headers, the message names the one that it means.
  return Object.hasOwn(draft, field) ? { [field]: part === undefined ? said : message } : undefined
}

const SCHEMA = '{ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] }'

/** A new tool, or what is to change about one. */
function ToolDialog({ of, close }: { of?: Tool; close: () => void }) {
  const { draft, text: plainText, choice } = useDraft(() => draftOf(of))
  const [faults, setFaults] = useState<ReturnType<typeof faultIn>>()
  const { kind, method } = draft
  const text: typeof plainText = (name, label, more) =>
    plainText(name, label, { fault: faults?.[name], ...more })
  const save = async () => {
    setFaults(undefined)
    try {
      await send('PUT', pathOf(draft.name), bodyOf(draft))
    } catch (error) {
      const found = faultIn(Refusal.of(error).message, draft)
      if (!found) throw error
      return setFaults(found)
    }
    close()
  }
  return (
    <Dialog title={of ? `Edit ${of.name}` : 'New tool'} close={close} class="wide">
      <Form busy="Saving …" save={save}>
        {!of &&
          text('name', 'Name', {
            required: true,
            pattern: '[a-z][a-z0-9_]{0,31}',
            title: 'Up to 32 lower-case letters, digits and underscores, a letter first',
            placeholder: 'book_table',
          })}
        {choice('kind', 'Kind', Object.entries(KINDS))}
        {text('title', kind === 'mcp' ? 'Title' : 'Title, for visitors', { placeholder: 'Book a table' })}
        {kind !== 'mcp' && (
          <>
            {text('description', 'What it does and when to call it, for the model', {
              required: true,
              rows: 2,
            })}
            {text('parameters', 'Parameters, as a JSON Schema', {
              rows: 5,
              code: true,
              placeholder: SCHEMA,
              hint: 'Empty: it takes none.',
            })}
          </>
        )}
        {kind === 'http' && choice('method', 'Method', optionsOf(METHODS))}
        {kind !== 'page' &&
          text('url', 'Address', {
            required: true,
            placeholder: kind === 'mcp' ? 'https://example.com/mcp' : 'https://example.com/stock?city=…',
            hint: kind === 'http' && (
              <>
                <code>${'{parameters.city}'}</code> stands for what the model fills in.
              </>
            ),
          })}
        {kind === 'http' &&
          method !== 'GET' &&
          text('body', 'Body', { rows: 3, code: true, hint: 'JSON. Empty: the parameters as an object.' })}
        {kind === 'mcp' &&
          text('tools', 'Which of its tools, one a line', {
            rows: 3,
            hint: 'Empty: all. They are read from the server when this is saved.',
          })}
        {kind !== 'page' && (
          <>
            {choice('leave', 'When are visitors asked for leave?', leaves, {
              fault: faults?.leave,
              hint: kind === 'mcp' && 'Tools that may change things are asked for in any case.',
            })}
            {text('headers', 'Headers, one a line', {
              rows: 3,
              code: true,
              placeholder: 'authorization: Bearer …',
              hint: 'Values are stored sealed, and shown masked. One that is left masked stays as it is.',
            })}
          </>
        )}
      </Form>
    </Dialog>
  )
}

const leaves = Object.entries(LEAVES).map(([leave, [asked]]) => [leave, asked] as const)
