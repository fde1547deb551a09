/** The configurations of examples/, evaluated with a stand-in for the programs that read them: none of those is installed. */
import { join } from 'node:path'
import { build } from 'esbuild'
import { expect, test } from 'vitest'

const SCRIPT = { type: 'module', src: 'http://localhost:8108/widget/parley-chat.js' }

/** Imports of packages give a function that returns what it is given. */
async function evaluate(file: string): Promise<unknown> {
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, '../../examples', file)],
    bundle: true,
    format: 'esm',
    write: false,
    logLevel: 'silent',
    plugins: [
      {
        name: 'stand-ins',
        setup({ onResolve, onLoad }) {
          onResolve({ filter: /^[^./]/ }, ({ path, kind }) =>
            kind === 'entry-point' ? undefined : { path, namespace: 'stand-in' },
          )
          onLoad({ filter: /.*/, namespace: 'stand-in' }, () => ({
            contents:
              'const given = (value) => value; export default given; export const defineConfig = given',
          }))
        },
      },
    ],
  })
  const text = Buffer.from(outputFiles[0]?.text ?? '').toString('base64')
  return (await import(/* @vite-ignore */ `data:text/javascript;base64,${text}`)).default
}

test('VitePress gets the script, and is told that the element is no component of Vue', async () => {
  const config = (await evaluate('vitepress.config.js')) as {
    head: unknown
    vue: { template: { compilerOptions: { isCustomElement(tag: string): boolean } } }
  }
  expect(config.head).toEqual([['script', SCRIPT]])
  const { isCustomElement } = config.vue.template.compilerOptions
  expect([isCustomElement('parley-chat'), isCustomElement('other')]).toEqual([true, false])
})

test('Docusaurus and Starlight get the script', async () => {
  expect(await evaluate('docusaurus.config.js')).toMatchObject({ scripts: [SCRIPT] })
  expect(await evaluate('starlight.config.mjs')).toMatchObject({
    integrations: [{ head: [{ tag: 'script', attrs: SCRIPT }] }],
  })
})
