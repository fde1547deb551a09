/** The widget's own words in other languages, loaded where a page is in one of them. */
import ar from './languages/ar.json'
import de from './languages/de.json'
import es from './languages/es.json'
import fr from './languages/fr.json'
import it from './languages/it.json'
import ja from './languages/ja.json'
import ko from './languages/ko.json'
import nl from './languages/nl.json'
import pl from './languages/pl.json'
import pt from './languages/pt.json'
import ru from './languages/ru.json'
import tr from './languages/tr.json'
import zh from './languages/zh.json'
import type { Words } from './words'

const LANGUAGES: Record<string, Words> = { ar, de, es, fr, it, ja, ko, nl, pl, pt, ru, tr, zh }

/** @param tag of a language, as browsers write it. @returns undefined for one that is not here */
const wordsIn = (tag: string): Words | undefined => LANGUAGES[tag.split('-')[0] ?? '']

export interface Languages {
  wordsIn: typeof wordsIn
}

;(globalThis as Record<symbol, unknown>)[Symbol.for('parley-chat.languages')] = {
  wordsIn,
} satisfies Languages
