/** The language that a question is asked in, as far as its grammar shows it, and the built-in answerer's own words in it. */
import { once, regExp } from '../../lib/once'
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

/**
 * German first: its nouns have capital letters. Folded. Lists of packages have no words that ask, some have nouns and numbers, and
 * those of six languages weigh 5 KB.
 */
const LANGUAGES: [grammar: string, says: Phrases][] = [
  [
    'aber alle als am an auch auf aus bei beim bin bis bist da damit darf das dass dein dem den denn der des die ' +
      'dies diese diesem diesen dieser doch du durch ein eine einem einen einer eines er es euch euer fuer fur ' +
      'gegen gibt hab habe haben hat hatte ich ihr ihre im in ins ist ja kann kein keine konnen konnt man mein ' +
      'meine meinem meinen meiner mich mir mit muss mussen nach nicht noch nur ob oder ohne sein seit sich sie sind ' +
      'so soll sollen uber um und uns unser unsere unter vom von vor wann warum was wegen welche welchem welchen ' +
      'welcher welches wem wen wenn wer werden wie wieviel wieviele wir wird wo woher wohin wurde wurden zu zum zur',
    {
      notFound: 'Die Dokumente beantworten diese Frage nicht.',
      nothingFound: 'Zu dieser Frage wurden keine Dokumente gefunden.',
      notDirectly: 'Die Dokumente beantworten das nicht direkt. Hier lohnt es sich nachzulesen:',
      from: 'Aus Ihren Dokumenten:',
      unsure: 'Vielleicht beantworten die Dokumente das nicht direkt. Am nächsten kommt:',
      check:
        'Vielleicht ist das nicht die Antwort: Lesen Sie an der Stelle nach, bevor Sie sich darauf verlassen.',
      about: 'Worum geht es in „%“?',
    },
  ],
  [
    'a ai alors au aux avec avez avoir ce ces cette ceux chez combien comment d dans de des dois doit du elle ' +
      'elles en est et etes etre faut il ils j je l la le les leur leurs lui ma mais me mes moi mon n ne nos notre ' +
      'nous on ont ou par pas peut peux plus pour pourquoi puis qu quand que quel quelle quelles quels qui quoi s ' +
      'sa sans se ses si son sont sur t ta tes toi ton tu un une vos votre vous y',
    {
      notFound: 'Les documents ne répondent pas à cette question.',
      nothingFound: 'Aucun document trouvé pour cette question.',
      notDirectly: 'Les documents n’y répondent pas directement. À lire en priorité :',
      from: 'Dans vos documents :',
      unsure: 'Les documents n’y répondent peut-être pas directement. Le plus proche :',
      check: 'Ce n’est peut-être pas la réponse : vérifiez à la source avant de vous y fier.',
      about: 'De quoi parle « % » ?',
    },
  ],
  [
    'a al alguna ante asi como con cual cuales cuando cuanta cuantas cuanto cuantos de del desde donde el ella ' +
      'ellos en entre es esta estan estas este esto estos fue ha hay la las le les lo los mas me mi mis muy nos ' +
      'nuestra nuestro o para pero por porque puede puedo que quien quienes se ser si sin sobre son su sus tambien ' +
      'te tengo tiene tienen tu tus un una unas uno unos y ya yo',
    {
      notFound: 'Los documentos no responden a esta pregunta.',
      nothingFound: 'No se encontraron documentos para esta pregunta.',
      notDirectly: 'Los documentos no lo responden directamente. Dónde leer más:',
      from: 'En sus documentos:',
      unsure: 'Puede que los documentos no lo respondan directamente. Lo más cercano:',
      check: 'Puede que no sea la respuesta: compruébelo en el documento antes de confiar en ella.',
      about: '¿De qué trata «%»?',
    },
  ],
  [
    'a ad ai al alla alle anche che chi ci come con cosa cui da dal dalla dei del della delle di dove e ed gli ha ' +
      'hanno ho i il in io l la le lo ma mi mia mio nei nel nella non o per perche piu posso possono puo qual quale ' +
      'quali quando quanta quante quanti quanto questa questo se si sia siete sono su sua suo sul sulla tra tu un ' +
      'una uno',
    {
      notFound: 'I documenti non rispondono a questa domanda.',
      nothingFound: 'Nessun documento trovato per questa domanda.',
      notDirectly: 'I documenti non rispondono direttamente. I passi da leggere:',
      from: 'Dai vostri documenti:',
      unsure: 'Forse i documenti non rispondono direttamente. Ecco che cosa si avvicina di più:',
      check: 'Forse non è la risposta: verificatela nel documento prima di farvi affidamento.',
      about: ENGLISH.about,
    },
  ],
  [
    'a ao aos as ate com como da das de do dos e ela ele em entre esta este eu foi ha isso ja mais mas me meu ' +
      'minha muito na nao nas no nos o onde os ou para pela pelo pode podem por porque posso qual quais quando ' +
      'quanta quantas quanto quantos que quem se sem ser seu sua sao tem tenho um uma voce voces',
    {
      notFound: 'Os documentos não respondem a esta pergunta.',
      nothingFound: 'Nenhum documento foi encontrado para esta pergunta.',
      notDirectly: 'Os documentos não respondem diretamente. Onde ler:',
      from: 'Dos seus documentos:',
      unsure: 'Talvez os documentos não respondam diretamente. O mais próximo:',
      check: 'Talvez não seja a resposta: confira no documento antes de confiar nela.',
      about: ENGLISH.about,
    },
  ],
  [
    'aan al als bij dan dat de deze die dit door een en er geen heb hebben heeft het hij hoe hoeveel ik in is ja ' +
      'je jullie kan kunnen kunt maar me met mij mijn moet moeten na naar niet nog of om onder ons onze ook op over ' +
      'te toch tot u uit uw van veel voor waar waarom wanneer was wat we welk welke wie wij wordt zijn zo zonder ' +
      'zou',
    {
      notFound: 'De documenten beantwoorden deze vraag niet.',
      nothingFound: 'Er zijn geen documenten gevonden voor deze vraag.',
      notDirectly: 'De documenten beantwoorden dit niet direct. Hier staat meer:',
      from: 'Uit uw documenten:',
      unsure: 'Misschien beantwoorden de documenten dit niet direct. Dit komt het dichtst in de buurt:',
      check: 'Misschien is dit niet het antwoord: lees het na op zijn plaats voordat u erop vertrouwt.',
      about: ENGLISH.about,
    },
  ],
]

const languages = once(() =>
  LANGUAGES.map(
    ([grammar, says], at): Language => ({
      grammar: new Set(grammar.split(' ')),
      capitalizesNouns: at === 0,
      says,
    }),
  ),
)

/** Words of grammar that a text needs to be of a language: `Los Angeles` is not Spanish. */
const FEWEST = 2

/**
 * The language that most of a question's grammar is of. Single letters do not count.
 * @returns undefined for English, for one that is not known, and where it cannot be told
 */
export function languageOf(words: readonly Word[]): Language | undefined {
  const distinct = [...new Set(words.map(({ folded }) => folded))].filter(({ length }) => length > 1)
  const english = distinct.filter(isStopword).length
  const counted = languages()
    .map((language) => ({ language, own: distinct.filter((word) => language.grammar.has(word)).length }))
    .sort((a, b) => b.own - a.own)
  const [first, second] = counted
  if (first === undefined || first.own < FEWEST || first.own <= english) return undefined
  return first.own === second?.own ? { ...first.language, says: ENGLISH } : first.language
}

const ELIDED = regExp(
  String.raw`(?<![\p{L}\p{N}])(?:[cdjlmnst]|qu|jusqu|lorsqu|all|dall|dell|nell|sull|quell|un)['\u2019](?=\p{L})`,
  'giu',
)

/** French and Italian write some words together with the next one: `l'ufficio`. This leaves them out. */
export const withoutElisions = (text: string): string => text.replace(ELIDED(), '')

/** What an answer says around the documents' own words, in the language of a question. */
export const phrasesFor = (question: string): Phrases => languageOf(wordsOf(question))?.says ?? ENGLISH

/** Whether a text asks, in any of the languages, what the document of a title is about, or that of any title. */
export const asksAbout = (text: string, title?: string): boolean =>
  [ENGLISH, ...LANGUAGES.map(([, says]) => says)].some(({ about }) => {
    const [before = '', after = ''] = about.split('%')
    if (!text.startsWith(before) || !text.endsWith(after)) return false
    return title === undefined || text.slice(before.length, -after.length) === title
  })
