import { expect, test, vi } from 'vitest'
import { objectCalls } from '../../src/durable/objects'
import { ApiError } from '../../src/errors'

interface Rpc {
  read(of: string): Promise<string>
  write(of: string): Promise<string>
}

const METHODS = { read: 'repeat', write: 'once' } as const

const moved = () => Object.assign(new Error('The object was reset.'), { retryable: true })

/** An object whose first calls fail. */
function failing(...faults: unknown[]) {
  const calls: string[] = []
  const connect = vi.fn((): Rpc => {
    let broken: unknown
    const answer = async (of: string): Promise<string> => {
      calls.push(of)
      broken ??= faults.shift()
      if (broken !== undefined) throw broken
      return `answer to ${of}`
    }
    return { read: answer, write: answer }
  })
  return { calls, connect, object: objectCalls(connect, METHODS) }
}

test('a call that the platform says may be repeated is, with a new stub each time', async () => {
  const { object, connect, calls } = failing(moved(), moved())
  expect(await object.read('a')).toBe('answer to a')
  expect(calls).toEqual(['a', 'a', 'a'])
  expect(connect).toHaveBeenCalledTimes(3)
  expect(await object.read('b')).toBe('answer to b')
  expect(connect).toHaveBeenCalledTimes(3)
})

test('it is a 503 with a time to wait in the end', async () => {
  const { object, calls } = failing(moved(), moved(), moved(), moved(), moved())
  const error = await object.read('a').catch((error) => error)
  expect(error).toBeInstanceOf(ApiError)
  expect(error).toMatchObject({ status: 503, retryAfter: expect.any(Number) })
  expect(calls).toHaveLength(4)
})

test('one that may have been carried out is not repeated where that would make a difference', async () => {
  const { object, calls } = failing(moved())
  await expect(object.write('a')).rejects.toMatchObject({ status: 503 })
  expect(calls).toHaveLength(1)
  // The next call does not meet the stub that broke.
  expect(await object.write('b')).toBe('answer to b')
})

test('an object with too much to do is left alone', async () => {
  const overloaded = Object.assign(moved(), { overloaded: true })
  const { object, calls } = failing(overloaded)
  await expect(object.read('a')).rejects.toMatchObject({ status: 503, retryAfter: expect.any(Number) })
  expect(calls).toHaveLength(1)
})

test.each([
  'Durable Object exceeded its memory limit and was reset.',
  "Durable Object's isolate exceeded its memory limit due to overflowing the memory limit.",
  'Worker exceeded memory limit.',
])('one that was reset for its memory is told so, and is in the log: %s', async (message) => {
  const log = vi.spyOn(console, 'error').mockReturnValue()
  for (const marks of [
    { overloaded: true },
    { overloaded: true, retryable: true },
    { retryable: true },
    {},
  ]) {
    const { object, calls } = failing(Object.assign(new Error(message), marks))
    await expect(object.read('a')).rejects.toMatchObject({
      status: 503,
      message: expect.stringMatching(/more memory .* Ask for less at once/),
    })
    expect(calls).toHaveLength(1)
  }
  expect(log).toHaveBeenCalledTimes(4)
  expect(String(log.mock.calls[0])).toContain('out of memory in read')
  log.mockRestore()
})

test.each([new Error('a bug'), 'a text', undefined, null])('%s is passed on as it is', async (fault) => {
  const object = objectCalls(
    (): Rpc => ({ read: () => Promise.reject(fault), write: () => Promise.reject(fault) }),
    METHODS,
  )
  expect(await object.read('a').catch((error) => [error])).toEqual([fault])
})

test('the first attempt goes out at once, and a handle is no promise', async () => {
  const { object, calls } = failing()
  const reading = object.read('a')
  expect(calls).toEqual(['a'])
  await reading
  expect(await Promise.resolve(object)).toBe(object)
})

test('a method that an object of an earlier version lacks is an error of this call alone', async () => {
  const { object, calls } = failing(new TypeError('The RPC receiver does not implement "write".'))
  await expect(object.write('a')).rejects.toThrow(TypeError)
  expect(calls).toHaveLength(1)
  expect(await object.read('b')).toBe('answer to b')
})
