/**
 * Does without a language model what chat front ends ask for beside the chat: a title, tags, a query. All are taken
 * from the first question of the chat.
 */
import { contentStems, wordsOf } from '../words'

const LONGEST_TITLE = 60
const MOST_WORDS = 7
const MOST_TAGS = 3
/** Punctuation that is removed from the end of a title. */
const SIGNS = '?!.,;:…'

/** @param task the prompt, with the chat in it as `USER: ...` and `ASSISTANT: ...` */
export function taskFrom(task: string): string {
  const question = firstQuestion(task)
  // The prompt shows the JSON that it wants, such as { "title": "..." }.
  const [, form] = /"(title|tags|follow_ups|queries)"\s*:/.exec(task) ?? []
  switch (form) {
    case 'title':
      return JSON.stringify({ title: titleOf(question) })
    case 'tags':
      return JSON.stringify({ tags: tagsOf(question) })
    case 'follow_ups':
      return JSON.stringify({ follow_ups: [] })
    case 'queries':
      return JSON.stringify({ queries: question === '' ? [] : [question] })
    default:
      return titleOf(question)
  }
}

function firstQuestion(task: string): string {
  const start = Math.max(0, task.lastIndexOf('<chat_history>'), task.lastIndexOf('### Chat History'))
  const [, said = ''] = /^[ \t]*(?:\|\|>)?user:[ \t]*(\S.*)$/im.exec(task.slice(start)) ?? []
  return said.trim()
}

function titleOf(question: string): string {
  const words = question.split(/\s+/).filter(Boolean)
  let title = words.slice(0, MOST_WORDS).join(' ')
  if (title.length > LONGEST_TITLE) {
    const last = title.lastIndexOf(' ', LONGEST_TITLE)
    title = title.slice(0, last > 0 ? last : LONGEST_TITLE)
  }
  let end = title.length
  while (SIGNS.includes(title[end - 1] ?? ' ')) end -= 1
  const short = title.slice(0, end)
  return short === '' ? 'New chat' : `${short[0]!.toUpperCase()}${short.slice(1)}`
}

function tagsOf(question: string): string[] {
  const stems = contentStems(question)
  const named = wordsOf(question).filter(({ stem }) => stems.has(stem))
  const tags = new Map(
    named.map(({ stem, folded }) => [stem, `${folded[0]!.toUpperCase()}${folded.slice(1)}`]),
  )
  return tags.size === 0 ? ['General'] : [...tags.values()].slice(0, MOST_TAGS)
}
