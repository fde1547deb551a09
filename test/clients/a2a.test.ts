/** Agent2Agent by the official SDK's client over real sockets: tasks that are read again, canceled, and kept from others. */
import { type Message, type Task, TaskState } from '@a2a-js/sdk'
import type { Client } from '@a2a-js/sdk/client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { answerIn, connectA2a, messageOf, textIn } from './a2a-client'
import { createAssistant, createHistory, createModel, createShows, request, unique } from './harness'
import { type Llm, startLlm } from './llm'
import { type Paced, startPaced } from './paced'

let llm: Llm
let paced: Paced
let shows: string
let assistant: string
/** writes for a minute, if nobody stops it */
let slow: string
let client: Client

beforeAll(async () => {
  llm = await startLlm()
  paced = await startPaced()
  shows = await createShows()
  // One history, so that both assistants go on with each other's conversations.
  const history_collection = await createHistory()
  const model = await createModel({
    model_name: 'openai/gpt-4o-mini',
    openai_url: llm.url,
    history_collection,
  })
  assistant = await createAssistant({ model, collections: [shows] })
  const writing = await createModel({
    model_name: 'openai/paced-6000-10',
    openai_url: paced.url,
    history_collection,
  })
  slow = await createAssistant({ model: writing, collections: [shows] })
  client = await connectA2a(assistant)
})
afterAll(() => Promise.all([llm.stop(), paced.stop()]))

const taskOf = async (by: Client, ...message: Parameters<typeof messageOf>): Promise<Task> => {
  const result: Task | Message = await by.sendMessage(messageOf(...message))
  return result as Task
}

const named = (id: string) => ({ tenant: '', id })
const cancel = (by: Client, id: string) => by.cancelTask({ ...named(id), metadata: undefined })

/** What the SDK makes of an error's number. */
const error = (reason: string) => ({ reason })
const NOT_FOUND = error('TASK_NOT_FOUND')
const NOT_CANCELABLE = error('TASK_NOT_CANCELABLE')

/** Asks, and returns as soon as the answer is being written. `ended` is the state in which the stream ends. */
async function begin(by: Client, ...message: Parameters<typeof messageOf>) {
  const stream = by.sendMessageStream(messageOf(...message))
  let begun: Task | undefined
  for (;;) {
    const { value, done } = await stream.next()
    if (done) throw new Error('The stream ended before the answer began.')
    if (value.payload?.$case === 'task') begun = value.payload.value
    if (value.payload?.$case === 'artifactUpdate') break
  }
  const ended = (async () => {
    let state: TaskState | undefined
    for await (const { payload } of stream) {
      if (payload?.$case === 'statusUpdate') state = payload.value.status?.state
    }
    return state
  })()
  return { task: begun!, ended }
}

/** Subscribes to a task. `text` is the artifact so far, `ended` the state in which the stream ends. */
function follow(by: Client, id: string) {
  let text = ''
  const ended = (async () => {
    let state: TaskState | undefined
    for await (const { payload } of by.resubscribeTask(named(id))) {
      if (payload?.$case === 'artifactUpdate') text += textIn(payload.value.artifact?.parts)
      if (payload?.$case === 'statusUpdate') state = payload.value.status?.state
    }
    return state
  })()
  return { text: () => text, ended }
}

describe('a task', () => {
  test('can be read again, and its context goes on', async () => {
    const first = await taskOf(client, 'an action series')
    expect(first.status?.state).toBe(TaskState.TASK_STATE_COMPLETED)
    expect(answerIn(first)).toBe('You asked: an action series')
    const second = await taskOf(client, 'and another?', { contextId: first.contextId })
    expect(second.contextId).toBe(first.contextId)
    expect(second.id).not.toBe(first.id)
    for (const task of [first, second]) {
      const read = await client.getTask(named(task.id))
      expect(read).toMatchObject({
        id: task.id,
        contextId: task.contextId,
        status: { state: task.status?.state },
      })
      expect(answerIn(read)).toBe(answerIn(task))
    }
    expect(answerIn(second)).toBe('You asked: standalone: and another?')
  })

  test('is canceled while it is written, and only then', async () => {
    const writer = await connectA2a(slow)
    const { task, ended } = await begin(writer, unique('an action series'))
    expect((await writer.getTask(named(task.id))).status?.state).toBe(TaskState.TASK_STATE_WORKING)
    const later = `${task.contextId}.99`
    await expect(cancel(writer, later)).rejects.toMatchObject(NOT_FOUND)
    const { abandoned } = paced
    expect((await cancel(writer, task.id)).status?.state).toBe(TaskState.TASK_STATE_CANCELED)
    expect(await ended).toBe(TaskState.TASK_STATE_CANCELED)
    // The model is not asked to write on.
    await expect.poll(() => paced.abandoned, { timeout: 20_000 }).toBeGreaterThan(abandoned)
    // Nothing of a stopped answer is stored.
    const stopped = await writer.getTask(named(task.id))
    expect([stopped.status?.state, stopped.artifacts]).toEqual([TaskState.TASK_STATE_CANCELED, []])
  })

  test('that has ended cannot be canceled, and a later one runs on', async () => {
    const { id, contextId } = await taskOf(client, 'an action series')
    await expect(cancel(client, id)).rejects.toMatchObject(NOT_CANCELABLE)
    const writer = await connectA2a(slow)
    const { task, ended } = await begin(writer, unique('another'), { contextId })
    expect(task.contextId).toBe(contextId)
    await expect(cancel(writer, id)).rejects.toMatchObject(NOT_CANCELABLE)
    expect((await writer.getTask(named(task.id))).status?.state).toBe(TaskState.TASK_STATE_WORKING)
    await cancel(writer, task.id)
    expect(await ended).toBe(TaskState.TASK_STATE_CANCELED)
  })

  test('takes no further message, and an unknown one is not found', async () => {
    const { id, contextId } = await taskOf(client, 'an action series')
    const more = taskOf(client, 'and another?', { contextId, taskId: id })
    await expect(more).rejects.toMatchObject(error('UNSUPPORTED_OPERATION'))
    for (const unknown of ['task-1', `${crypto.randomUUID()}.1`, `${contextId}.2`]) {
      await expect(client.getTask(named(unknown))).rejects.toMatchObject(NOT_FOUND)
      await expect(cancel(client, unknown)).rejects.toMatchObject(NOT_FOUND)
      await expect(taskOf(client, 'x', { taskId: unknown })).rejects.toMatchObject(NOT_FOUND)
    }
  })

  test('that nobody reads any more ends when its context is asked again', async () => {
    const writer = await connectA2a(slow)
    const gone = new AbortController()
    const stream = writer.sendMessageStream(messageOf(unique('an action series')), { signal: gone.signal })
    const { value } = await stream.next()
    const first = value?.payload?.$case === 'task' ? value.payload.value : undefined
    gone.abort()
    await stream.return()
    const next = await begin(writer, unique('another'), { contextId: first!.contextId })
    expect(next.task.contextId).toBe(first!.contextId)
    await cancel(writer, next.task.id)
    expect(await next.ended).toBe(TaskState.TASK_STATE_CANCELED)
  })

  test('of a context that its client named is read, followed and canceled while its first answer is written', async () => {
    const writer = await connectA2a(slow)
    const { task, ended } = await begin(writer, unique('an action series'), {
      contextId: crypto.randomUUID(),
    })
    const read = await writer.getTask(named(task.id))
    expect(read).toMatchObject({ id: task.id, contextId: task.contextId })
    expect(read.status?.state).toBe(TaskState.TASK_STATE_WORKING)
    const followed = follow(writer, task.id)
    await expect.poll(() => followed.text().length, { timeout: 20_000 }).toBeGreaterThan(0)
    expect((await cancel(writer, task.id)).status?.state).toBe(TaskState.TASK_STATE_CANCELED)
    expect(await ended).toBe(TaskState.TASK_STATE_CANCELED)
    expect(await followed.ended).toBe(TaskState.TASK_STATE_CANCELED)
  })

  test('of such a context goes on, while its first answer is written and later', async () => {
    const writer = await connectA2a(slow)
    const gone = new AbortController()
    const place = { contextId: crypto.randomUUID() }
    const stream = writer.sendMessageStream(messageOf(unique('a film'), place), { signal: gone.signal })
    const { value } = await stream.next()
    const first = value?.payload?.$case === 'task' ? value.payload.value : undefined
    gone.abort()
    await stream.return()
    const next = await begin(writer, unique('another'), { contextId: first!.contextId })
    expect(next.task.contextId).toBe(first!.contextId)
    await cancel(writer, next.task.id)
    expect(await next.ended).toBe(TaskState.TASK_STATE_CANCELED)
  })

  test('that has ended is not followed', async () => {
    const { id } = await taskOf(client, 'an action series')
    await expect(follow(client, id).ended).rejects.toMatchObject(error('UNSUPPORTED_OPERATION'))
    await expect(follow(client, `${crypto.randomUUID()}.1`).ended).rejects.toMatchObject(NOT_FOUND)
  })

  test('a client may make up the name of a context', async () => {
    const contextId = crypto.randomUUID()
    const first = await taskOf(client, 'an action series', { contextId })
    const second = await taskOf(client, 'and another?', { contextId })
    expect(second.contextId).toBe(first.contextId)
    expect(answerIn(await client.getTask(named(second.id)))).toBe(answerIn(second))
  })
})

describe("somebody else's task", () => {
  const makeKey = async (): Promise<string> => {
    const { body } = await request('POST', '/keys', {
      description: 'a page',
      actions: ['documents:search'],
      collections: [shows],
    })
    return body.value
  }
  const visitor = () => ({ 'x-parley-visitor': crypto.randomUUID().repeat(2) })

  /** Who asks, and others who must not find it. */
  const parties = async (name: string) => {
    const [key, other] = [await makeKey(), await makeKey()]
    const [mine, theirs] = [visitor(), visitor()]
    return {
      owner: await connectA2a(name, key, mine),
      others: [
        await connectA2a(name, other),
        await connectA2a(name, key),
        await connectA2a(name, key, theirs),
        await connectA2a(name, key, { 'x-typesense-user-id': 'ann' }),
      ],
    }
  }

  test('is not found, whether it is read, canceled or continued', async () => {
    const { owner, others } = await parties(assistant)
    const { id, contextId } = await taskOf(owner, 'My name is Ann Onymous.')
    llm.forget()
    for (const other of others) {
      await expect(other.getTask(named(id))).rejects.toMatchObject(NOT_FOUND)
      await expect(cancel(other, id)).rejects.toMatchObject(NOT_FOUND)
      await expect(taskOf(other, 'Who am I?', { contextId })).rejects.toMatchObject(NOT_FOUND)
      await expect(taskOf(other, 'Who am I?', { taskId: id })).rejects.toMatchObject(NOT_FOUND)
      const streamed = other.sendMessageStream(messageOf('Who am I?', { contextId })).next()
      await expect(streamed).rejects.toMatchObject(NOT_FOUND)
    }
    expect(llm.calls()).toEqual([])
    expect(answerIn(await owner.getTask(named(id)))).toBe('You asked: My name is Ann Onymous.')
    expect((await taskOf(owner, 'And?', { contextId })).contextId).toBe(contextId)
  })

  test('is not found while it is written, and is written on', async () => {
    const { owner, others } = await parties(slow)
    const { task, ended } = await begin(owner, unique('an action series'))
    for (const other of others) {
      await expect(other.getTask(named(task.id))).rejects.toMatchObject(NOT_FOUND)
      await expect(cancel(other, task.id)).rejects.toMatchObject(NOT_FOUND)
      await expect(follow(other, task.id).ended).rejects.toMatchObject(NOT_FOUND)
    }
    expect((await owner.getTask(named(task.id))).status?.state).toBe(TaskState.TASK_STATE_WORKING)
    await cancel(owner, task.id)
    expect(await ended).toBe(TaskState.TASK_STATE_CANCELED)
  })

  test('with a name that its client made up, is reached by nobody who knows the name', async () => {
    const { owner, others } = await parties(assistant)
    const contextId = crypto.randomUUID()
    const { id } = await taskOf(owner, 'My name is Ann Onymous.', { contextId })
    llm.forget()
    for (const other of others) {
      const found = await taskOf(other, 'Who am I?', { contextId })
      expect(found.contextId).not.toBe(id.split('.')[0])
      expect(answerIn(found)).toBe('You asked: Who am I?')
    }
    expect(JSON.stringify(llm.calls())).not.toContain('Onymous')
  })
})
