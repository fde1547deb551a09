/**
 * What a second look finds and costs (`retrieval: "agentic"`): `npm run bench second-look`.
 *
 * Questions of bench/quality/ are joined to questions of two and three parts, each of which other documents answer. A scripted model
 * stands in for a good planner, which splits each question at its seams and asks once more for what is missing, and for a
 * careless one, which asks for something else. So the figures are bounds: a real model lies between them.
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

/** A model that knows the parts of each question. What it is named says how it plans. */
async function startPlanner(partsOf) {
  const plans = {
    good: (parts, found) =>
      found ? parts.filter((part) => !isAnswered(part, found)) : parts.length > 1 ? parts : [],
    careless: (_parts, found) =>
      ['history of it', 'what else is there', 'an overview', 'common mistakes'].map((question) => ({
        question: found ? `${question} once more` : question,
      })),
  }
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const bytes of request) body += bytes
    const { model, messages } = JSON.parse(body)
    const prompt = messages.at(-1).content
    const [, question] = /<Question>\n([^\n]*)\n\n<Searches>/.exec(prompt) ?? []
    const [, data] = /<Data>\n([\s\S]*?)\n\n<Question>/.exec(prompt) ?? []
    const found = data && JSON.parse(data).map(({ id }) => id)
    const searches = question && plans[model](partsOf.get(question), found)
    const content = searches?.map((part) => part.question).join('\n') || (question ? 'NONE' : 'An answer.')
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ choices: [{ message: { content }, finish_reason: 'stop' }] }))
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${server.address().port}`, stop: () => server.close() }
}

const WAYS = [
  ['plain', 'good'],
  ['agentic', 'good'],
  ['agentic', 'careless'],
]

export async function benchSecondLook(server) {
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
  const planner = await startPlanner(new Map(asked.map(({ question, parts }) => [question, parts])))
  const post = (path, method, body) => call(server, path, { method, body: JSON.stringify(body) })
  for (const id of ['good', 'careless']) {
    const model = { id, model_name: `openai/${id}`, api_key: 'sk', openai_url: planner.url }
    await post('/conversations/models', 'POST', {
      ...model,
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
    '| parts | questions | retrieval | all documents in the prompt | of the parts | calls | searches | tokens |',
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
        const { prompt } = trace.calls.find(({ purpose }) => purpose === 'answer')
        const [, data] = /<Data>\n([\s\S]*?)\n\n<Question>/.exec(prompt.at(-1).content)
        const ids = JSON.parse(data).map((document) => document.id)
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
  planner.stop()
}
