/** The pages of the API reference: Parley's own routes from openapi.json, those of other protocols from wires/. */
import { readFileSync } from 'node:fs'
import { anchors } from './anchors.mjs'
import { codeBlock, escaped, inline } from './markdown.mjs'
import { answers, objectSection, parameters, propertiesOf } from './schema-tables.mjs'
import { chat } from './wires/chat.mjs'
import { opensearch } from './wires/opensearch.mjs'
import { ownExamples } from './wires/own.mjs'
import { typesense } from './wires/typesense.mjs'

/** @typedef {import('./markdown.mjs').Heading} Heading */
/** @typedef {import('./wires/wire.mjs').Wire} Wire */

/** The wires that are not Parley's own. @type {Wire[]} */
export const wires = [typesense, opensearch, chat]

const ORIGIN = 'http://localhost:8108'

/** Hono's syntax of a path as readers know it: `{id}`. @param {string} path */
export const readable = (path) => path.replace(/:(\w+)(\{[^}]*\})?/g, '{$1}')

/** @typedef {{ method: string, send: string, body?: unknown, header: Wire['header'], stream?: boolean }} Example */

/** @param {unknown} body */
const textOf = (body) => (typeof body === 'string' ? body : JSON.stringify(body, undefined, 2))

/** @param {Example} example @returns {string} a command for a shell */
export function curl({ method, send, body, header, stream }) {
  const key = header === 'Authorization' ? 'Authorization: Bearer xyz' : 'X-TYPESENSE-API-KEY: xyz'
  const verb = method === (body === undefined ? 'GET' : 'POST') ? '' : ` -X ${method}`
  const lines = [`curl${stream ? ' -N' : ''}${verb} '${ORIGIN}${send}'`, `-H '${key}'`]
  if (stream && method === 'GET') lines.push("-H 'Accept: text/event-stream'")
  if (body !== undefined) {
    const type = typeof body === 'string' ? 'application/x-ndjson' : 'application/json'
    lines.push(`-H 'Content-Type: ${type}'`)
    lines.push(
      `${typeof body === 'string' ? '--data-binary' : '-d'} '${textOf(body).replaceAll("'", "'\\''")}'`,
    )
  }
  return lines.join(' \\\n  ')
}

/** A form that sends a request from the page. @param {string} id @param {Example} example */
function tryIt(id, { method, send, body, header }) {
  const lines = body === undefined ? 0 : Math.min(12, textOf(body).split('\n').length)
  const field =
    body === undefined
      ? ''
      : `<label for="${id}-body">Body</label><textarea id="${id}-body" name="body" rows="${lines}" spellcheck="false" data-type="${typeof body === 'string' ? 'application/x-ndjson' : 'application/json'}">${escaped(textOf(body))}</textarea>`
  return `<details class="try"><summary>Try it</summary>
<form data-try data-method="${method}" data-header="${header}">
<label for="${id}-path">Path and query</label><input id="${id}-path" name="path" value="${escaped(send)}" spellcheck="false" autocomplete="off">
${field}
<button type="submit">Send ${method}</button>
<p class="note" data-try-status role="status"></p>
<pre tabindex="0" data-try-reply hidden></pre>
</form></details>`
}

/** Methods and path of a route. @param {string} method @param {string} path */
const place = (method, path) => {
  const methods = method
    .split(', ')
    .map((each) => `<span class="method ${each.toLowerCase()}">${each}</span>`)
  return `${methods.join(' ')} <code>${escaped(path)}</code>`
}

/** @param {Wire} wire */
function wirePage({ name, title, about, header, groups }) {
  const anchorOf = anchors()
  /** @type {Heading[]} */
  const headings = [{ depth: 1, id: anchorOf(title), text: title }]
  const sections = groups.map((group) => {
    const id = anchorOf(group.title)
    headings.push({ depth: 2, id, text: escaped(group.title) })
    const routes = group.routes.map(({ method, path, what, send = path, body, gives }) => {
      const shown = readable(path)
      const at = anchorOf(`${method} ${shown}`)
      headings.push({ depth: 3, id: at, text: `${method.split(', ')[0]} ${escaped(shown)}` })
      const [first = 'GET'] = method.split(', ')
      /** @type {Example} */
      const example = { method: first, send, body, header, stream: gives === 'stream' }
      return `<section class="operation" aria-labelledby="${at}">
<h3 id="${at}" class="path"><a href="#${at}">${place(method, shown)}</a></h3>
<p>${inline(what)}</p>
${codeBlock(curl(example), 'sh')}${tryIt(at, example)}</section>`
    })
    const said = group.about === undefined ? '' : `<p>${inline(group.about)}</p>`
    return `<h2 id="${id}"><a href="#${id}">${escaped(group.title)}</a></h2>${said}${routes.join('\n')}`
  })
  const body = `<h1 id="${headings[0]?.id}">${escaped(title)}</h1>\n<p>${inline(about)}</p>\n${sections.join('\n')}`
  const summary = `Every route of the ${title.replace(/ API$/, '')} wire that Parley answers, with a command for each.`
  return { name, title, summary, body, headings }
}

/** Parley's own routes. */
function ownPage() {
  const { info, paths, components } = JSON.parse(
    readFileSync(new URL('../../ui/openapi.json', import.meta.url), 'utf8'),
  )
  /** @type {Record<string, import('./schema-tables.mjs').Schema>} */
  const schemas = components.schemas
  /** @type {Heading[]} */
  const headings = [{ depth: 1, id: 'api', text: "Parley's own API" }]
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(/** @type {Record<string, any>} */ (methods)).map(([verb, operation]) => {
      const {
        operationId: id,
        summary,
        description = '',
        parameters: given,
        requestBody,
        responses,
      } = operation
      headings.push({ depth: 2, id, text: escaped(summary) })
      const [body] = /** @type {{ schema: import('./schema-tables.mjs').Schema }[]} */ (
        Object.values(requestBody?.content ?? {})
      )
      const sample = ownExamples[id] ?? {}
      /** @type {Example} */
      const example = {
        method: verb.toUpperCase(),
        send: path.replace(/\{id\}/g, 'CONVERSATION').replace(/\{name\}/g, 'default'),
        header: 'X-TYPESENSE-API-KEY',
        ...sample,
      }
      const actions = operation['x-key-actions'].map((/** @type {string} */ each) => `<code>${each}</code>`)
      return `<section class="operation" aria-labelledby="${id}">
<h2 id="${id}"><a href="#${id}">${escaped(summary)}</a></h2>
<p class="path">${place(example.method, path)}</p>
<p>${inline(description)}</p>
<p class="note">The key needs ${actions.join(' or ')}.</p>
${parameters(given)}${propertiesOf('Body', body?.schema, schemas)}${answers(responses)}
${codeBlock(curl(example), 'sh')}${tryIt(id, example)}</section>`
    }),
  )
  const objects = Object.entries(schemas).map(([name, schema]) => objectSection(name, schema))
  headings.push({ depth: 2, id: 'objects', text: 'Objects' })
  for (const name of Object.keys(schemas)) headings.push({ depth: 3, id: name, text: name })
  const others = wires.map(({ name, title }) => `<a href="/docs/${name}">${escaped(title)}</a>`)
  const body = `<h1 id="api">Parley's own API</h1>
<p>${inline(info.description)}</p>
<p>Other protocols have pages of their own: ${others.join(', ')}. Tools read <a href="/openapi.json">openapi.json</a>.</p>
<div id="operations">${operations.join('\n')}</div>
<div id="schemas"><h2 id="objects"><a href="#objects">Objects</a></h2>${objects.join('\n')}</div>`
  return {
    name: 'api',
    title: "Parley's own API",
    summary:
      'Every route of conversations, assistants and usage: parameters, replies, a command for each, to try here.',
    body,
    headings,
  }
}

export const referencePages = () => [ownPage(), ...wires.map(wirePage)]
