/** A website on its way to a chat: its address, how far the server has read it, and what its chat looks like. Asks no server. */
import type { InferOutput } from 'valibot'
import type * as responses from '../../../../src/api/parley/response-schemas'

export type Source = InferOutput<typeof responses.Source>

/** A page that was read. */
export interface Title {
  title: string
  url: string
}

/** Pages that are read while somebody looks on: as many as the server reads at once. The others follow by themselves. */
export const FIRST_PAGES = 20

const LONGEST_NAME = 64
/** First questions of an assistant, and characters of one. */
const MOST_QUESTIONS = 3
const LONGEST_QUESTION = 60

/**
 * The address that somebody means who types `docs.example.com`.
 * @throws Error in words for whoever typed it
 */
export function addressOf(text: string): string {
  const typed = text.trim()
  const isOwnMachine = /^(?:localhost|[\d.]+|\[[\da-f:]+\])(?::\d+)?(?:\/|$)/i.test(typed)
  const whole = /^[a-z][\w+.-]*:\/\//i.test(typed) ? typed : `http${isOwnMachine ? '' : 's'}://${typed}`
  // Browsers take a space for a part of a host's name.
  const url = URL.canParse(whole) && !/\s/.test(typed) ? new URL(whole) : undefined
  if (!url || !/^https?:$/.test(url.protocol))
    throw new Error('This is no address of a website. One looks like https://docs.example.com/.')
  url.hash = ''
  return url.href
}

/** A name for a collection and its assistant that none of them has. @param base what it begins with */
export function freeName(base: string, taken: Set<string>): string {
  for (let number = 1; ; number++) {
    const end = number === 1 ? '' : `-${number}`
    const name = base.slice(0, LONGEST_NAME - end.length) + end
    if (!taken.has(name)) return name
  }
}

/** Whether a source is read for the first time, or waits for that. */
export const isNew = ({ last_run }: Source): boolean => last_run === undefined

/** Until when the site asked to be left alone, in milliseconds since 1970; undefined where it did not. */
export const restsUntil = ({ state, next_run_at: next }: Source, now = Date.now()): number | undefined =>
  state === 'reading' && next > now + 1_000 ? next : undefined

/** Whether the first pages are still to be read, and may be now. */
export const isFirst = (source: Source): boolean =>
  isNew(source) && (source.run?.pages ?? 0) < FIRST_PAGES && restsUntil(source) === undefined

/** Why a run brought nothing; undefined where it did, and while there was none. */
export function whyUnread({ url, last_run: run }: Source): string | undefined {
  if (!run || run.changed + run.unchanged > 0) return undefined
  const [fault] = run.failures
  const where = fault && fault.url !== url ? `${fault.url} ` : ''
  return `Nothing could be read of ${url}: ${where}${fault?.error ?? 'its pages hold no text, or ask not to be read'}.`
}

/** Sites name it for the browser's own bars, to match their background. No chat is told from a page by it. */
const WHITE = /^(?:#f{3,8}|white)$/i

/** What the chat of a website is called, in which colour, and which pages may show it. */
export const looksOf = ({ url, site: { name, color } = {} }: Source) => ({
  heading: name ?? new URL(url).host,
  origin: new URL(url).origin,
  ...(color !== undefined && !WHITE.test(color) && { accent: color }),
})

/** Titles that can be asked about, but that of the page on which a website begins. @param titles the first one first */
export const questionsOf = ([, ...titles]: Title[]): string[] =>
  [...new Set(titles.map(({ title }) => title))]
    .filter((title) => title.length <= LONGEST_QUESTION)
    .slice(0, MOST_QUESTIONS)
