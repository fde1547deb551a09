/** reStructuredText and AsciiDoc. */
import { expect, test } from 'vitest'
import { readContent } from '../../../scripts/parley/read/index.mjs'

const read = (path: string, text: string) => readContent(new TextEncoder().encode(text), path)

test('reStructuredText becomes Markdown; one that cannot be parsed is read as text', async () => {
  const { article } = (await read('x.rst', 'Keys\n====\n\nA *key* opens::\n\n  curl x\n')) as {
    article: { title: string; text: string }
  }
  expect(article.title).toBe('Keys')
  expect(article.text).toContain('curl x')
  expect(await read('y.rst', 'Keys\n====\n\n.. automodule:: keys\n   :members:\n\nText.\n')).toMatchObject({
    article: { title: 'Keys', text: expect.stringContaining('Text.') },
  })
})

test.each([
  [
    'roles, directives and names that only Sphinx knows',
    'Title\n=====\n\nSee :doc:`/birds`, :ref:`the table <tab>` and :py:class:`~a.Heron` [1]_ of |ver|.\n\n.. toctree::\n   :maxdepth: 2\n\n   a\n\n.. only:: html\n\n   Storks nest.\n\n   .. tab-set::\n\n      .. tab-item:: Apple\n\n         Green, of :math:`x`.\n\n.. versionadded:: 3.2\n   As said.\n\n.. py:function:: foo(a)\n   :noindex:\n\n   Does it.\n',
    'See /birds, the table and `Heron` of ver.\n\nStorks nest.\n\nApple\n\nGreen, of $x$.\n\nadded 3.2\n\nAs said.\n\n`foo(a)`\n\nDoes it.',
  ],
  [
    'code in a line, and names in angle brackets',
    'Title\n=====\n\nGive ``a <b>``, or <name>.\n',
    'Give `a <b>`, or \\<name>.',
  ],
  [
    'code as it is',
    'Title\n=====\n\n.. code-block:: rst\n\n   .. only:: html\n\n      :doc:`x`\n\nRun::\n\n  a :ref:`b`\n',
    '```\n.. only:: html\n\n   :doc:`x`\n```\n\nRun:\n\n```\na :ref:`b`\n```',
  ],
  [
    'tables, with any ends of lines',
    'Title\r\n=====\r\n\r\n.. list-table::\r\n   :header-rows: 1\r\n\r\n   * - Plan\r\n     - Price\r\n   * - Small\r\n     - 5\r\n',
    '| Plan | Price |\n| --- | --- |\n| Small | 5 |',
  ],
  [
    'the rest where one block is refused, with its headings and its definitions',
    'Title\n=====\n\nOf |v|, `here`_.\n\n.. |v| replace:: 3.1\n.. _here: https://x.example\n\nPart\n----\n\n.. image::\n   :align: left\n\nA *b*.\n\nDeep\n~~~~\n\n.. code-block:: sh\n   :caption: a.sh\n\n   ls\n',
    'Of 3.1, [here](https://x.example).\n\n## Part {#part}\n\nA _b_.\n\n### Deep {#deep}\n\na.sh\n\n```\nls\n```',
  ],
  [
    'terms with any indent, within each other',
    'Title\n=====\n\nOne\n  First.\n\n  Inner\n   Deep.\nTwo\n        Second.\n\n- a\n  b\n',
    '**One**: First.\n\n**Inner**: Deep.\n\n**Two**: Second.\n\n-   a b',
  ],
  [
    'lists of tables whose cells hold more than one paragraph',
    'Title\n=====\n\n.. list-table:: Fees\n   :header-rows: 1\n\n   * - Plan\n     - Parts\n   * - Pro, "big"\n     - - lamp\n       - rope\n   * - Small\n     - One.\n\n       Two.\n',
    'Fees\n\n| Plan | Parts |\n| --- | --- |\n| Pro, "big" | lamp; rope |\n| Small | One. Two. |',
  ],
  [
    'what kind a note is of, and numbers of lists',
    'Title\n=====\n\n.. warning:: Hot.\n\n.. seealso::\n  The sea.\n\n1. a\n\n   * c\n\n2. d\n',
    '**Warning**\n\nHot.\n\n**See also**\n\nThe sea.\n\n1.  a\n    \n    -   c\n        \n2.  d',
  ],
  [
    'tabs, also of code, cards, rubrics and names with a role over two lines',
    'Title\n=====\n\n.. tabs::\n\n   .. tab:: macOS\n\n      Use brew.\n\n   .. code-tab:: sh\n\n      ls *\n\n.. grid-item-card:: Card\n\n   Body.\n\n.. rubric:: Rub\n\n.. only:: latex\n\n   Print.\n\nSee :gh:`the long\nname <a>`.\n',
    'macOS\n\nUse brew.\n\nsh\n\n```\nls *\n```\n\nCard\n\nBody.\n\n**Rub**\n\nSee the long name.',
  ],
])('reStructuredText keeps %s', async (_, page, text) => {
  expect(await read('x.rst', page)).toEqual({
    article: { title: 'Title', text: `# Title {#title}\n\n${text}` },
  })
})

test('AsciiDoc becomes Markdown, and reads no other file', async () => {
  const page =
    '= Herons\n\nA heron *waits*.\n\nNOTE: Fish only.\n\n|===\n|Plan |Price\n\n.2+|Big\n|6\n|7\n|===\n\n[source,sh]\n----\nrun\n----\n\ninclude::/etc/passwd[]\n'
  const { article } = (await read('x.adoc', page)) as { article: { title: string; text: string } }
  expect(article.title).toBe('Herons')
  expect(article.text).toContain(
    'A heron **waits**.\n\n**Note:** Fish only.\n\n| Plan | Price |\n| --- | --- |\n| Big | 6 |\n| Big | 7 |\n\n```sh\nrun\n```',
  )
  expect(article.text).not.toContain('root:')
  const more =
    '= T\n:toc:\n\nA kbd:[Ctrl+C] of stem:[x^2].footnote:[A note.]\n\n== Part\n\ninclude::a.adoc[]\n\nEnd.'
  expect(await read('x.adoc', more)).toMatchObject({
    article: {
      text: expect.stringMatching(
        /^# T\n\nA Ctrl\+C of \$x\^2\$\.\n\n## Part \{#_part\}\n\nEnd\.\n[^[]*A note\.$/,
      ),
    },
  })
})
