import { expect, test } from 'vitest'
import { readOptions } from '../../scripts/options.mjs'

test('what is not said has a default', () => {
  expect(readOptions([], {})).toEqual({
    help: false,
    port: 8108,
    folder: undefined,
    sample: true,
    apiKey: 'xyz',
  })
})

test('port, folder and sample', () => {
  const options = readOptions(['--port', '9000', '--persist-to', 'data', '--no-sample'], {
    PARLEY_API_KEY: 'secret',
  })
  expect(options).toEqual({ help: false, port: 9000, folder: 'data', sample: false, apiKey: 'secret' })
  expect(readOptions([], { PARLEY_SAMPLE: 'off' }).sample).toBe(false)
})

test.each([
  [['--port', 'x'], '--port takes a number from 1 to 65535, not "x".'],
  [['--port', '70000'], '--port takes a number from 1 to 65535, not "70000".'],
  [['--persist-to', ''], '--persist-to takes the name of a folder.'],
  [['--prot', '1'], "Unknown option '--prot'"],
])('%j is refused', (args, message) => {
  expect(() => readOptions(args, {})).toThrow(message)
})

test('a key that an environment file cannot hold is refused', () => {
  expect(() => readOptions([], { PARLEY_API_KEY: 'a"b' })).toThrow('PARLEY_API_KEY may not contain')
})
