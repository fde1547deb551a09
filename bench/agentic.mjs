/**
 * What `retrieval: "agentic"` finds and costs: `npm run bench agentic`.
 *
 * Questions of bench/quality/ are joined to questions of two and three parts, each of which other documents answer. A scripted model
 * stands in for a good one, which searches for each part whose document it was not shown, and for a careless one, which
 * searches for something else. So the figures are bounds: a real model lies between them.
 */
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { here, load, prepare, readLines, SETS, shared } from './quality.mjs'
import { call } from './server.mjs'

/** The questions of a set, every `of` of them joined to one, from far apart in the list. */
function joined(questions, of) {
  const stride = Math.floor(questions.length / of)
  return Array.from({ length: stride }, (_, at) => {
    const parts = Array.from({ length: of }, (_, part) => questions[at + part * stride])
    return { parts, question: parts.map(({ question }) => question.replace(/[?\s]*$/, '')).join(', and ') }
  })
}

const isAnswered = ({ documents }, ids) => documents.some((id) => ids.includes(id))

/** A model that knows the parts of each question. What it is named says what it searches for. */
async function startModel(partsOf) {
  const searches = {
    good: (parts, ids) => (parts.length > 1 ? parts.filter((part) => !isAnswered(part, ids)) : []),
    careless: () =>
      ['history of it', 'what else is there', 'an overview', 'common mistakes'].map((question) => ({
        question,
      })),
  }
  /** ids of the documents that it was last shown, by question */
  const shown = new Map()
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const bytes of request) body += bytes
    const { model, messages, tools } = JSON.parse(body)
    const prompt = messages.find(({ content }) => content?.includes('<Question>'))?.content ?? ''
    const [, data = '[]'] = /<Data>\n([\s\S]*?)\n\n<Question>/.exec(prompt) ?? []
    const [, question] = /<Question>\n([^\n]*)\n/.exec(prompt) ?? []
    const replies = messages.filter(({ role }) => role === 'tool')
    const lists = [data, ...replies.map(({ content }) => content)].filter((text) => text.startsWith('['))
    const ids = lists.flatMap((json) => JSON.parse(json).map(({ id }) => id))
    shown.set(question, ids)
    // It asks at most twice, and no more than four things at once.
    const rounds = messages.filter(({ tool_calls }) => tool_calls).length
    const asked =
      tools && question && rounds < 2 ? searches[model](partsOf.get(question), ids).slice(0, 4) : []
    const calls = asked.map(({ question }, at) => ({
      id: `call-${rounds}-${at}`,
      type: 'function',
      function: { name: 'search', arguments: JSON.stringify({ query: question }) },
    }))
    const message = calls.length > 0 ? { content: '', tool_calls: calls } : { content: 'An answer.' }
    response.setHeader('content-type', 'application/json')
    response.end(
      JSON.stringify({ choices: [{ message, finish_reason: calls.length > 0 ? 'tool_calls' : 'stop' }] }),
    )
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${server.address().port}`, shown, stop: () => server.close() }
}

const WAYS = [
  ['plain', 'good'],
  ['agentic', 'good'],
  ['agentic', 'careless'],
]

export async function benchAgentic(server) {
  await prepare(server)
  const asked = []
  for (const [name, set] of Object.entries(SETS)) {
    const file = set.folder && join(shared, set.folder, 'corpus.jsonl')
    if (file && !existsSync(file)) {
      console.log(`${name} is left out: ${file} is not there.`)
      continue
    }
    await load(server, name, set, file ? readLines(file) : set.documents())
    const questions = readLines(join(here, `${name}.jsonl`))
    for (const of of [1, 2, 3])
      for (const each of joined(questions, of)) asked.push({ ...each, of, set: name })
  }
  const model = await startModel(new Map(asked.map(({ question, parts }) => [question, parts])))
  const post = (path, method, body) => call(server, path, { method, body: JSON.stringify(body) })
  for (const id of ['good', 'careless']) {
    await post('/conversations/models', 'POST', {
      id,
      model_name: `openai/${id}`,
      api_key: 'sk',
      openai_url: model.url,
      history_collection: 'history',
      max_bytes: 16_384,
    })
    for (const retrieval of ['plain', 'agentic'])
      for (const set of new Set(asked.map((each) => each.set)))
        await post(`/assistants/${retrieval}-${id}-${set}`, 'PUT', {
          model: id,
          collections: [set],
          retrieval,
        })
  }
  console.log(
    '| parts | questions | retrieval | all documents seen | of the parts | calls | searches | tokens |',
  )
  console.log('| --- | --- | --- | --- | --- | --- | --- | --- |')
  for (const of of [1, 2, 3]) {
    const some = asked.filter((each) => each.of === of)
    for (const [retrieval, id] of WAYS) {
      const sums = { all: 0, parts: 0, calls: 0, searches: 0, tokens: 0 }
      for (const { set, question, parts } of some) {
        const turn = JSON.parse(
          await post(`/a/${retrieval}-${id}-${set}/conversations`, 'POST', { question }),
        )
        const [{ trace }] = JSON.parse(
          await call(server, `/conversations/${turn.conversation_id}/trace`),
        ).turns
        const ids = model.shown.get(question)
        const right = parts.filter((part) => isAnswered(part, ids)).length
        sums.all += right === parts.length ? 1 : 0
        sums.parts += right / parts.length
        sums.calls += trace.calls.length
        sums.searches += trace.searches.length
        sums.tokens += turn.usage.input_tokens + turn.usage.output_tokens
      }
      const per = (name, digits) => (sums[name] / some.length).toFixed(digits)
      const percent = (name) => `${((100 * sums[name]) / some.length).toFixed(0)}%`
      const way = retrieval === 'plain' ? 'plain' : `agentic, ${id}`
      console.log(
        `| ${of} | ${some.length} | ${way} | ${percent('all')} | ${percent('parts')} | ${per('calls', 1)} | ${per('searches', 1)} | ${per('tokens', 0)} |`,
      )
    }
  }
  model.stop()
}
