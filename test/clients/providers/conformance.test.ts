/**
 * Every provider does the same for whoever asks: the same conversation, the same events, the same history, and the
 * same end of what goes wrong. Each case goes through the real Worker over sockets, to a counterpart that speaks
 * the provider's wire.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Received, textOf } from '../event-source'
import { client, createModel, request, turnTo, url } from '../harness'
import { ANSWER, type Counterpart, REASONING, REFUSED, TOKENS } from './counterparts'
import { documented, Table, write } from './table'
import { askAnew, CUT, kept, prepare, usageIn, watch, whole } from './turns'
import { isShort, WIRES } from './wires'

const COLUMNS = [
  'Conversation',
  'Answer',
  'Stream',
  'Tokens',
  'Finish',
  'Reasoning',
  'Refusal',
  'Error',
  'Time-out',
  'Stop',
  'Cut',
]
const table = new Table(
  WIRES.map(({ name }) => name),
  COLUMNS,
)

const WITHHELD = 'a content filter or the model itself withheld the answer'
// The greeting of a new model has to be answered in this time, too, whatever else the machine is doing.
const SECONDS_OF_SILENCE = 0.8

describe.each(WIRES.map((wire) => [wire.name, wire] as const))('%s', (_, wire) => {
  const { name, label, lacks = [] } = wire
  const usual = url
  let relay: Counterpart
  let shows: string
  let model: string

  beforeAll(async () => {
    relay = await wire.start()
    turnTo(relay.parley ?? usual)
    shows = await prepare()
    model = await createModel(wire.model(relay.url))
  })
  afterAll(() => relay.stop())

  /** A test whose success is a cell of the table. */
  const proves = (column: string, body: () => Promise<void>, cell = 'yes') =>
    test(column, async () => {
      await body()
      table.set(name, column, cell)
    })

  const isCounted = !lacks.includes('tokens')

  proves('Conversation', async () => {
    const turn = async (q: string, conversation_id?: string) => {
      const chunks: string[] = []
      const { conversation } = await client()
        .collections(shows)
        .documents()
        .search(
          {
            q,
            query_by: 'embedding',
            exclude_fields: 'embedding',
            conversation: true,
            conversation_stream: true,
            conversation_model_id: model,
            ...(conversation_id !== undefined && { conversation_id }),
            streamConfig: { onChunk: ({ message }) => chunks.push(message) },
          },
          {},
        )
      expect(chunks.join('')).toBe(conversation?.answer)
      return conversation!
    }
    const first = await turn('an action series')
    const second = await turn('and another one?', first.conversation_id)
    expect(second.conversation_history?.conversation).toEqual([
      { user: 'an action series' },
      { assistant: 'You asked: an action series' },
      { user: 'and another one?' },
      { assistant: 'You asked: standalone: and another one?' },
    ])
    expect((await kept(first.conversation_id)).length).toBe(2)
  })

  proves('Answer', async () => {
    const { body } = await whole(model, 'answer')
    expect(body).toMatchObject({ answer: ANSWER, finish_reason: 'stop' })
  })

  proves('Stream', async () => {
    const { events, id } = await watch(model, 'stream')
    const kinds = events.map(({ event }) => event).filter((kind, at, all) => kind !== all[at - 1])
    expect(kinds).toEqual(['question', 'retrieval', 'delta', 'usage', 'done'])
    expect(textOf(events)).toBe(ANSWER)
    expect(events.at(-1)?.data).toMatchObject({ answer: ANSWER, finish_reason: 'stop' })
    expect(await kept(id)).toMatchObject([{ answer: ANSWER }])
  })

  const tokens = async () => {
    const [input_tokens, output_tokens] = TOKENS
    const { events } = await watch(model, 'tokens')
    const usage = usageIn(events)
    const counted = { model: wire.model('').model_name, input_tokens, output_tokens }
    if (isCounted) expect(usage).toEqual(counted)
    else expect(usage).toMatchObject({ model: counted.model, estimated: true })
  }
  proves('Tokens', tokens, isCounted ? 'yes' : 'estimated')

  if (lacks.includes('finish')) table.set(name, 'Finish', 'not told')
  else {
    proves('Finish', async () => {
      expect((await watch(model, 'length')).last.data).toMatchObject({
        answer: ANSWER,
        finish_reason: 'length',
      })
    })
  }

  if (lacks.includes('reasoning')) table.set(name, 'Reasoning', 'not told')
  else {
    proves('Reasoning', async () => {
      const { events, last, id } = await watch(model, 'reasoning')
      expect(last.data.answer).toBe(ANSWER)
      expect(JSON.stringify([events, await kept(id)])).not.toContain(REASONING)
    })
  }

  /** A turn that fails, streamed and not: its error, and nothing of it in history. */
  const fails = async (chosen: string, caseName: string, message: string | RegExp) => {
    const { last, id } = await watch(chosen, caseName)
    expect(last.event).toBe('error')
    expect(last.data.message).toMatch(message)
    expect(await kept(id)).toEqual([])
    const { status, body } = await whole(chosen, caseName)
    expect(status).toBe(400)
    expect(body.message).toMatch(message)
  }

  if (lacks.includes('refusal')) table.set(name, 'Refusal', 'not told')
  else proves('Refusal', () => fails(model, 'refusal', `${label} API error: ${WITHHELD}`))

  proves('Error', async () => {
    await fails(model, 'error', `${label} API error: `)
    await fails(model, 'error', REFUSED)
  })

  proves('Time-out', async () => {
    const impatient = await createModel({ ...wire.model(relay.url), timeout: SECONDS_OF_SILENCE })
    await Promise.all([
      fails(impatient, 'silence', `${label} API timeout.`),
      fails(impatient, 'stall', `${label} API timeout.`),
    ])
  })

  proves('Stop', async () => {
    // Calls that ran out of time are hung up a little later.
    await expect.poll(() => relay.open).toBe(0)
    const before = relay.left
    const connection = await askAnew(model, 'stall')
    const id = connection.headers.get('x-parley-conversation-id')!
    let stopped: Promise<unknown> | undefined
    const events: Received[] = []
    for await (const event of connection.events) {
      events.push(event)
      if (event.event === 'delta') stopped ??= request('POST', `/conversations/${id}/stop`)
    }
    await stopped
    expect(events.at(-1)?.event).toBe('error')
    await expect.poll(() => relay.left).toBe(before + 1)
    expect(await kept(id)).toEqual([])
  })

  proves('Cut', async () => {
    await Promise.all([fails(model, 'cut', CUT), fails(model, 'end', CUT)])
  })
})

test('docs/models.md has the table of this run', () => {
  if (isShort) {
    // A table of fewer rows has narrower columns.
    const cells = (text: string) => text.split('\n').map((line) => line.split('|').map((cell) => cell.trim()))
    const rows = cells(String(table)).filter((_, at) => at !== 1)
    expect(rows).toHaveLength(WIRES.length + 1)
    return expect(cells(documented())).toEqual(expect.arrayContaining(rows))
  }
  if (process.env.PROVIDERS === 'write') write(table)
  expect(documented(), 'run npm run providers').toBe(String(table))
})
