/** The language that a question is asked in, as far as its grammar shows it, and the built-in answerer's own words in it. */
import { type Grammar, grammarsOf } from '../../lib/grammar'
import { regExp } from '../../lib/once'
import { type Word, wordsOf } from '../words'

export interface Language {
  /** folded words that are only grammar, or ask */
  grammar: ReadonlySet<string>
  /** of its stems */
  locale: Grammar['locale']
  says: Phrases
}

export interface Phrases {
  /** no sentence answers */
  notFound: string
  /** the search found nothing */
  nothingFound: string
  /** before places that may answer */
  notDirectly: string
  /** before an answer, where it stands under headings */
  from: string
  /** before an uncertain answer, and after it */
  unsure: string
  check: string
  /** asks what a document is about, whose title takes the place of `%` */
  about: string
}

export const ENGLISH: Phrases = {
  notFound: 'The documents do not answer this question.',
  nothingFound: 'No documents were found for this question.',
  notDirectly: 'The documents do not answer this directly. The best places to read:',
  from: 'From your documents:',
  unsure: 'The documents may not answer this directly. What comes nearest:',
  check: 'This may not be the answer: read it in its place before you rely on it.',
  about: 'What is “%” about?',
}

/** By locale. */
const SAYS: Record<Grammar['locale'], Phrases> = {
  de: {
    notFound: 'Die Dokumente beantworten diese Frage nicht.',
    nothingFound: 'Zu dieser Frage wurden keine Dokumente gefunden.',
    notDirectly: 'Die Dokumente beantworten das nicht direkt. Hier lohnt es sich nachzulesen:',
    from: 'Aus Ihren Dokumenten:',
    unsure: 'Vielleicht beantworten die Dokumente das nicht direkt. Am nächsten kommt:',
    check:
      'Vielleicht ist das nicht die Antwort: Lesen Sie an der Stelle nach, bevor Sie sich darauf verlassen.',
    about: 'Worum geht es in „%“?',
  },
  fr: {
    notFound: 'Les documents ne répondent pas à cette question.',
    nothingFound: 'Aucun document trouvé pour cette question.',
    notDirectly: 'Les documents n’y répondent pas directement. À lire en priorité\u00a0:',
    from: 'Dans vos documents\u00a0:',
    unsure: 'Les documents n’y répondent peut-être pas directement. Ce qui s’en rapproche le plus\u00a0:',
    check: 'Ce n’est peut-être pas la réponse\u00a0: vérifiez dans le document avant de vous y fier.',
    about: 'De quoi parle «\u00a0%\u00a0»\u00a0?',
  },
  es: {
    notFound: 'Los documentos no responden a esta pregunta.',
    nothingFound: 'No se encontraron documentos para esta pregunta.',
    notDirectly: 'Los documentos no responden a esto directamente. Dónde conviene leer:',
    from: 'En sus documentos:',
    unsure: 'Puede que los documentos no respondan a esto directamente. Lo que más se acerca:',
    check: 'Puede que esta no sea la respuesta: compruébela en el documento antes de confiar en ella.',
    about: '¿De qué trata «%»?',
  },
  it: {
    notFound: 'I documenti non rispondono a questa domanda.',
    nothingFound: 'Nessun documento trovato per questa domanda.',
    notDirectly: 'I documenti non rispondono direttamente. Ecco dove conviene leggere:',
    from: 'Dai tuoi documenti:',
    unsure: 'Forse i documenti non rispondono direttamente. Ecco che cosa si avvicina di più:',
    check: 'Forse questa non è la risposta: verificala nel documento prima di farci affidamento.',
    about: 'Di che cosa parla «%»?',
  },
  pt: {
    notFound: 'Os documentos não respondem a esta pergunta.',
    nothingFound: 'Nenhum documento foi encontrado para esta pergunta.',
    notDirectly: 'Os documentos não respondem diretamente. Onde vale a pena ler:',
    from: 'Dos seus documentos:',
    unsure: 'Talvez os documentos não respondam diretamente. O que mais se aproxima:',
    check: 'Talvez esta não seja a resposta: confira no documento antes de confiar nela.',
    about: 'De que trata “%”?',
  },
  nl: {
    notFound: 'De documenten beantwoorden deze vraag niet.',
    nothingFound: 'Er zijn geen documenten gevonden voor deze vraag.',
    notDirectly: 'De documenten beantwoorden dit niet direct. Hier kunt u het beste verder lezen:',
    from: 'Uit uw documenten:',
    unsure: 'Misschien beantwoorden de documenten dit niet direct. Dit komt het dichtst in de buurt:',
    check: 'Misschien is dit niet het antwoord: lees het na in het document voordat u erop vertrouwt.',
    about: 'Waar gaat “%” over?',
  },
}

/**
 * The language that most of a question's grammar is of.
 * @returns undefined for English, for one that is not known, and where it cannot be told
 */
export function languageOf(words: readonly Word[]): Language | undefined {
  const [first, ...others] = grammarsOf(words.map(({ folded }) => folded))
  if (first === undefined) return undefined
  const { locale, words: grammar } = first
  return {
    grammar,
    locale,
    says: others.length > 0 ? ENGLISH : SAYS[locale],
  }
}

const ELIDED = regExp(
  String.raw`(?<![\p{L}\p{N}])(?:[cdjlmnst]|qu|jusqu|lorsqu|all|dall|dell|nell|sull|quell|un)['\u2019](?=\p{L})`,
  'giu',
)

/**
 * The words of a text with their stems in a language; undefined: English. French and Italian write some words together with the next
 * one, `l'ufficio`: these are left out.
 */
export const wordsIn = (language: Language | undefined, text: string): Word[] =>
  language ? wordsOf(text.replace(ELIDED(), ''), language.locale) : wordsOf(text)

/** What an answer says around the documents' own words, in the language of a question. */
export const phrasesFor = (question: string): Phrases => languageOf(wordsOf(question))?.says ?? ENGLISH

/** Whether a text asks, in any of the languages, what the document of a title is about, or that of any title. */
export const asksAbout = (text: string, title?: string): boolean =>
  [ENGLISH, ...Object.values(SAYS)].some(({ about }) => {
    const [before = '', after = ''] = spaced(about).split('%')
    const asked = spaced(text)
    if (!asked.startsWith(before) || !asked.endsWith(after)) return false
    return title === undefined || asked.slice(before.length, -after.length) === spaced(title)
  })

/** Whoever types what was suggested types plain spaces for those that do not break. */
const spaced = (text: string): string => text.replaceAll('\u00a0', ' ')
