import { expect, test } from 'vitest'
import { DEFAULT_HOSTS, readOptions, urlOf } from '../../scripts/options.mjs'

test('what is not said has a default', () => {
  expect(readOptions([], {})).toEqual({
    help: false,
    port: 8108,
    folder: '.parley',
    sample: true,
    apiKey: 'xyz',
    allowedHosts: DEFAULT_HOSTS,
    log: false,
    host: 'localhost',
    servedHosts: 'loopback',
    origins: 'loopback',
  })
})

test('names, addresses and origins are opened one by one', () => {
  const open = ['--host', '0.0.0.0', '--allow-host', 'parley.lan', '--allow-host', '*.app.github.dev']
  expect(readOptions([...open, '--allow-origin', 'https://shop.example:8443'], {})).toMatchObject({
    host: '0.0.0.0',
    servedHosts: 'loopback, addresses, parley.lan, *.app.github.dev',
    origins: 'loopback, https://shop.example:8443',
  })
  expect(readOptions(['--host', '127.0.0.1'], {}).servedHosts).toBe('loopback')
  expect(urlOf('0.0.0.0', 9)).toBe('http://localhost:9')
  expect(urlOf('::1', 9)).toBe('http://[::1]:9')
})

test('port, folder and sample', () => {
  const options = readOptions(['--port', '9000', '--persist-to', 'data', '--no-sample'], {
    PARLEY_API_KEY: 'secret',
  })
  expect(options).toMatchObject({ help: false, port: 9000, folder: 'data', sample: false, apiKey: 'secret' })
  expect(readOptions([], { PARLEY_SAMPLE: 'off' }).sample).toBe(false)
  expect(readOptions([], { PARLEY_HOSTS: 'gpu.lan', PARLEY_LOG: 'on' })).toMatchObject({
    allowedHosts: 'gpu.lan',
    log: true,
  })
})

test.each([
  [['--port', 'x'], '--port takes a number from 1 to 65535, not "x".'],
  [['--port', '70000'], '--port takes a number from 1 to 65535, not "70000".'],
  [['--persist-to', ''], '--persist-to takes the name of a folder.'],
  [['--host', 'parley.lan'], '--host takes an address such as 0.0.0.0, not "parley.lan".'],
  [['--allow-host', 'parley.lan:80'], '--allow-host takes a name such as parley.lan'],
  [['--allow-host', '*'], '--allow-host takes a name such as parley.lan'],
  [['--allow-origin', 'shop.example'], '--allow-origin takes an origin such as https://shop.example'],
  [['--allow-origin', 'https://shop.example/page'], '--allow-origin takes an origin such as'],
  [['--allow-origin', '*'], '--allow-origin takes an origin such as'],
  [['--prot', '1'], "Unknown option '--prot'"],
])('%j is refused', (args, message) => {
  expect(() => readOptions(args, {})).toThrow(message)
})

test('a key that an environment file cannot hold is refused', () => {
  expect(() => readOptions([], { PARLEY_API_KEY: 'a"b' })).toThrow('PARLEY_API_KEY may not contain')
})
