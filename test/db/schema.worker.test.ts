/** Whether the rows that the code reads and writes are those of the tables that the migrations make. */
import { env } from 'cloudflare:test'
import { expect, it } from 'vitest'
import { columnOf } from '../../src/db/client'
import * as schema from '../../src/db/schema'

it.each(Object.values(schema))('$name has the columns of its table', async ({ name, columns }) => {
  const { results } = await env.DB.prepare(`PRAGMA table_info(${name})`).all<{
    name: string
    type: string
    notnull: number
  }>()
  const made = results.map((column) => [
    column.name,
    `${column.type.toLowerCase()}${column.notnull ? '' : '?'}`,
  ])
  const listed = Object.entries(columns).map(([property, kind]) => [columnOf(property), kind])
  expect(Object.fromEntries(listed)).toEqual(Object.fromEntries(made))
})
