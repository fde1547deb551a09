/** The part of a document that is shown for a question: whole blocks around the sentence that answers, under their headings. */
import type { Block, Unit } from './blocks'
import type { Candidate, Evidence } from './evidence'
import { strengthIn } from './fields'
import { hasLook, type Question, wantsCode } from './question'
import { readOut } from './records'
import { splitSentences } from './sentences'

/** A block is shown whole if it has at most this share more characters than there is room. */
const OVER = 1.5
/** characters of a section that says little by itself */
const LITTLE_SAID = 200
/** A table is shown whole if it takes at most this share of the room; of a larger one, the rows that match. */
const SMALL = 0.5
/** Questions that one figure answers. */
export const FIGURES = ['when', 'often', 'count', 'price', 'version']
/** An introduction of more characters stands for itself. */
const LONGEST_INTRODUCTION = 400
/** A word of the question deserves a block if it weighs this share of the heaviest one. */
const WORTH_SAYING = 0.3
/** A block holds a word if it is there in any of its forms. One of like meaning may be another: Saturday, Sunday. */
const HELD = 0.9
/** Of a long list or table, the lines that score at least this share of the best one are shown. */
const AS_GOOD = 0.9
const MOST_LINES = 12
const GAP = '…'

/** `It ...`, and `Use it ...` */
const DANGLING =
  /^(?:\w+ )?(it|its|they|their|them|this|these|those|he|she|his|her)\b|^(?:that|such|however|also|but|and|so)\b/i

/**
 * @param room characters that the excerpt may have; a single block may have more
 * @param label to put behind its sentences in square brackets
 */
export function excerptOf(
  best: Candidate,
  question: Question,
  evidence: Evidence,
  room: number,
  label?: string,
): string {
  const { place } = best.sentence
  if (!place) return labelled(readOut(best.sentence, question, evidence), label)
  const { blocks } = place
  const shown = blocksAround(best, question, evidence, room)
  const parts: string[] = []
  let last = shown[0]! - 1
  const { headings } = blocks[place.at]!
  let above = ''
  for (const at of shown) {
    const block = blocks[at]!
    if (at > last + 1) parts.push(GAP)
    const below = block.headings.slice(headings.length).join(' › ')
    if (below !== above) parts.push(`**${below}**`)
    above = below
    parts.push(written(block, at, best, room, label))
    last = at
  }
  const text = parts.join('\n\n')
  return label === undefined || text.includes(`[${label}]`) ? text : `${text}\n\n[${label}]`
}

const sizeOf = ({ units, head = '' }: Block): number =>
  units.reduce((sum, { shown }) => sum + shown.length, head.length)

/** The places of the blocks to show, in order. */
function blocksAround(best: Candidate, question: Question, evidence: Evidence, room: number): number[] {
  const { blocks, at } = best.sentence.place!
  const { headings } = blocks[at]!
  const isOwn = (other: Block | undefined): boolean => other?.headings.join('\n') === headings.join('\n')
  let from = at
  while (isOwn(blocks[from - 1])) from -= 1
  let to = at
  while (isOwn(blocks[to + 1])) to += 1
  // A section that says little is shown with those below it, unless a time or a number was asked for and it has one.
  const isShort = blocks.slice(from, to + 1).reduce((sum, block) => sum + sizeOf(block), 0) < LITTLE_SAID
  const isAnswered = FIGURES.includes(question.kind) && hasLook(question.kind, best.sentence.text)
  const isBelow = (other: Block | undefined): boolean =>
    other !== undefined && headings.every((heading, level) => other.headings[level] === heading)
  if (isShort && !isAnswered && question.kind !== 'definition') while (isBelow(blocks[to + 1])) to += 1
  const taken = new Set([at])
  let used = Math.min(sizeOf(blocks[at]!), room * OVER)
  const take = (index: number, isNeeded: boolean): boolean => {
    if (index < from || index > to || taken.has(index)) return false
    const size = sizeOf(blocks[index]!)
    if (!isNeeded && used + size > room) return false
    taken.add(index)
    used += Math.min(size, room * OVER)
    return true
  }
  const before = blocks[at - 1]
  const isIntroduced =
    before?.kind === 'text' &&
    sizeOf(before) <= LONGEST_INTRODUCTION &&
    (blocks[at]!.kind !== 'text' ||
      before.units[0]!.text.endsWith(':') ||
      DANGLING.test(blocks[at]!.units[0]!.text))
  if (isIntroduced) take(at - 1, true)
  const takeAnnounced = (index: number) => {
    const block = blocks[index]!
    if (block.kind !== 'text') return
    const isCode = blocks[index + 1]?.kind === 'code' && wantsCode(question)
    if (block.units[0]!.text.endsWith(':') || isCode) take(index + 1, true)
  }
  takeAnnounced(at)
  for (const index of completing(best, taken, question, evidence)) {
    if (take(index, true)) takeAnnounced(index)
  }
  for (let next = at + 1; next <= to; next++) if (!taken.has(next) && !take(next, false)) break
  for (let next = at - 1; next >= from; next--) if (!taken.has(next) && !take(next, false)) break
  return [...taken].sort((a, b) => a - b)
}

/**
 * The blocks of a section that hold what was asked and is not said yet. "Does the Harbour shop have parking?" is about the
 * shop, and the line about parking may be far down in the list of what it has.
 */
function completing(
  { section: { above, candidates }, sentence }: Candidate,
  taken: ReadonlySet<number>,
  { kind, terms }: Question,
  { strengths, weight }: Evidence,
): number[] {
  const least = WORTH_SAYING * Math.max(0, ...weight.values())
  const added: number[] = []
  const { blocks } = sentence.place!
  const placed = candidates.filter((each) => each.sentence.place?.blocks === blocks)
  for (const term of terms) {
    const own = strengths.get(term.stem)!
    const holds = (stems: Set<string>) => strengthIn(stems, own) >= HELD
    // "When does it start?" asks for that time and no other.
    const isAboutTime = kind === 'when' && /^st(?:art|op)$/.test(term.stem)
    if (!isAboutTime && weight.get(term.stem)! < least) continue
    if (holds(above)) continue
    const holding = placed.filter(
      ({ sentence: { text }, stems }) => holds(stems) && (!isAboutTime || hasLook(kind, text)),
    )
    const isSaid = holding.some(
      ({ sentence: { place } }) => taken.has(place!.at) || added.includes(place!.at),
    )
    if (holding.length === 0 || isSaid) continue
    added.push(holding.reduce((most, one) => (one.score > most.score ? one : most)).sentence.place!.at)
  }
  return added
}

/** A block as Markdown. One that is too long is cut between its lines or sentences. */
function written(block: Block, at: number, best: Candidate, room: number, label: string | undefined): string {
  const { kind, units, head } = block
  if (kind === 'code') return shortened(units[0]!.shown, room * OVER)
  const isWhole = sizeOf(block) <= room * (kind === 'table' ? SMALL : OVER)
  if (kind === 'text') {
    return isWhole ? labelled(units[0]!.shown, label) : sentencesAround(best, at, units[0]!, room, label)
  }
  const gap = kind === 'table' ? '| … |' : '- …'
  const lines = isWhole ? units.map(({ shown }) => labelledLine(shown, kind, label)) : []
  if (!isWhole) {
    let last = -1
    for (const index of linesOf(block, at, best, room)) {
      if (index > last + 1 && last >= 0) lines.push(gap)
      lines.push(labelledLine(units[index]!.shown, kind, label))
      last = index
    }
    if (last < units.length - 1) lines.push(gap)
  }
  return [...(head === undefined ? [] : [head]), ...lines].join('\n')
}

/** The items or rows of a long list or table that match. */
function linesOf({ units }: Block, at: number, best: Candidate, room: number): number[] {
  const scores = new Map<number, number>()
  for (const { sentence, score } of best.section.candidates) {
    const { place } = sentence
    if (place?.blocks === best.sentence.place!.blocks && place.at === at) scores.set(place.unit, score)
  }
  const most = Math.max(...scores.values())
  const chosen: number[] = []
  let used = 0
  for (const [index, { shown }] of units.entries()) {
    const isBest = (scores.get(index) ?? 0) >= AS_GOOD * most
    if (!isBest) continue
    if (used + shown.length > room && scores.get(index) !== most) continue
    used += shown.length
    chosen.push(index)
    if (chosen.length === MOST_LINES) break
  }
  return chosen
}

/** The best sentence of a long paragraph, and as many of those around it as fit. */
function sentencesAround(
  { sentence }: Candidate,
  at: number,
  { text }: Unit,
  room: number,
  label: string | undefined,
): string {
  const sentences = splitSentences(text)
  const isOwn = sentence.place!.at === at
  let from = isOwn ? Math.max(0, sentences.indexOf(sentence.text)) : 0
  let to = from
  let used = sentences[from]!.length
  const fits = (index: number): boolean => used + (sentences[index]?.length ?? room) <= room
  while (to + 1 < sentences.length && fits(to + 1)) used += sentences[++to]!.length
  while (from > 0 && fits(from - 1)) used += sentences[--from]!.length
  const shown = labelled(sentences.slice(from, to + 1).join(' '), label)
  return `${from > 0 ? `${GAP} ` : ''}${shown}${to + 1 < sentences.length ? ` ${GAP}` : ''}`
}

/** Code that is too long ends after a line with its fence. */
function shortened(code: string, most: number): string {
  if (code.length <= most) return code
  const end = code.lastIndexOf('\n', most)
  const fence = /^\s*(?:`{3,}|~{3,})/.exec(code)![0]
  return `${code.slice(0, end < 0 ? most : end)}\n${GAP}\n${fence}`
}

/** Puts a label behind each sentence. */
const labelled = (text: string, label: string | undefined): string =>
  label === undefined
    ? text
    : splitSentences(text)
        .map((sentence) => `${sentence} [${label}]`)
        .join(' ')

/** Puts a label behind the first line of an item. */
const labelledLine = (shown: string, kind: Block['kind'], label: string | undefined): string =>
  label === undefined || kind === 'table' ? shown : shown.replace(/(?=\n|$)/, ` [${label}]`)
