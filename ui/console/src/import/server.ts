/** Parley as the command line's import calls it. */
import type { Field } from '../../../../scripts/parley/import/schema.mjs'
import { call } from '../api'

type Options = { body?: string | object }

const init = (method: string, { body }: Options = {}): RequestInit => ({
  method,
  ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
})

export const server = {
  send: (method: string, path: string, options?: Options): Promise<Response> =>
    call(path, init(method, options)),
  call: async (method: string, path: string, options?: Options) =>
    (await call(path, init(method, options))).json(),
  /** Looked up in the list of its kind: a browser reports each answer of 404 as an error of the page. */
  find: async (path: string) => {
    const at = path.lastIndexOf('/')
    const name = decodeURIComponent(path.slice(at + 1))
    const listed = await (await call(path.slice(0, at))).json()
    const all: Named[] = Array.isArray(listed) ? listed : listed.assistants
    return all.find((each) => (each.name ?? each.id) === name)
  },
}

interface Named {
  name?: string
  id?: string
  fields?: Field[]
}
