/** The language that a question is asked in, as far as its grammar shows it, and the built-in answerer's own words in it. */
import { deu, fra, ita, nld, por, spa } from 'stopword'
import { once } from '../../once'
import { isStopword, type Word, wordsOf } from '../words'

export interface Language {
  /** folded words that are only grammar, or ask */
  grammar: ReadonlySet<string>
  /** nouns have a capital letter, so one does not make a name */
  capitalizesNouns: boolean
  says: Phrases
}

export interface Phrases {
  /** no sentence answers */
  notFound: string
  /** the search found nothing */
  nothingFound: string
  /** before places that may answer */
  notDirectly: string
  /** before an uncertain answer */
  unsure: string
}

export const ENGLISH: Phrases = {
  notFound: 'The documents do not answer this question.',
  nothingFound: 'No documents were found for this question.',
  notDirectly: 'The documents do not answer this directly. The best places to read:',
  unsure: 'The documents may not answer this directly. What comes nearest:',
}

/** What the lists of `stopword` lack: words that ask. */
const LANGUAGES: [words: string[], asking: string, phrases: Phrases][] = [
  [
    deu,
    'wieviel wieviele welchem welchen worin wofur',
    {
      notFound: 'Die Dokumente beantworten diese Frage nicht.',
      nothingFound: 'Zu dieser Frage wurden keine Dokumente gefunden.',
      notDirectly: 'Die Dokumente beantworten das nicht direkt. Hier lohnt es sich nachzulesen:',
      unsure: 'Vielleicht beantworten die Dokumente das nicht direkt. Am nächsten kommt:',
    },
  ],
  [
    fra,
    'combien comment pourquoi quand quoi est-ce lequel laquelle',
    {
      notFound: 'Les documents ne répondent pas à cette question.',
      nothingFound: 'Aucun document trouvé pour cette question.',
      notDirectly: 'Les documents n’y répondent pas directement. À lire en priorité :',
      unsure: 'Les documents n’y répondent peut-être pas directement. Le plus proche :',
    },
  ],
  [
    spa,
    'cuanto cuanta cuantos cuantas como cuales es son esta estan hay tiene puedo puede',
    {
      notFound: 'Los documentos no responden a esta pregunta.',
      nothingFound: 'No se encontraron documentos para esta pregunta.',
      notDirectly: 'Los documentos no lo responden directamente. Lo mejor para leer:',
      unsure: 'Puede que los documentos no lo respondan directamente. Lo más cercano:',
    },
  ],
  [
    ita,
    'quando posso puo c’e',
    {
      notFound: 'I documenti non rispondono a questa domanda.',
      nothingFound: 'Nessun documento trovato per questa domanda.',
      notDirectly: 'I documenti non rispondono direttamente. I passi da leggere:',
      unsure: 'Forse i documenti non rispondono direttamente. Il più vicino:',
    },
  ],
  [
    por,
    'quanto quanta quantos quantas onde porque tem posso pode esta',
    {
      notFound: 'Os documentos não respondem a esta pergunta.',
      nothingFound: 'Nenhum documento foi encontrado para esta pergunta.',
      notDirectly: 'Os documentos não respondem diretamente. Onde ler:',
      unsure: 'Talvez os documentos não respondam diretamente. O mais próximo:',
    },
  ],
  [
    nld,
    'hoeveel waar wanneer waarom welke kunt',
    {
      notFound: 'De documenten beantwoorden deze vraag niet.',
      nothingFound: 'Er zijn geen documenten gevonden voor deze vraag.',
      notDirectly: 'De documenten beantwoorden dit niet direct. Hier staat meer:',
      unsure: 'Misschien beantwoorden de documenten dit niet direct. Het dichtst in de buurt:',
    },
  ],
]

const languages = once(() =>
  LANGUAGES.map(
    ([words, asking, says]): Language => ({
      grammar: new Set(wordsOf(`${words.join(' ')} ${asking}`).map(({ folded }) => folded)),
      capitalizesNouns: words === deu,
      says,
    }),
  ),
)

/**
 * The language that most of a question's grammar is of.
 * @returns undefined for English, for one that is not known, and where it cannot be told
 */
export function languageOf(words: readonly Word[]): Language | undefined {
  let most = words.filter(({ folded }) => isStopword(folded)).length
  let found: Language | undefined
  for (const language of languages()) {
    const own = words.filter(({ folded }) => language.grammar.has(folded)).length
    if (own <= most) continue
    most = own
    found = language
  }
  return found
}
