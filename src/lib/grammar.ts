/**
 * Words of grammar and words that ask, in seven languages. They phrase a question but do not say what it is about. Folded: in small
 * letters, without diacritics. Lists of packages have no words that ask, some have nouns and numbers, and those of six languages
 * weigh 5 KB. It imports nothing, so that programs of Node's can take it as it is.
 */

/** German first: where a text fits two as well, the first is meant. */
const LISTS = {
  de:
    'aber alle als am an auch auf aus bei beim bin bis bist da damit darf das dass dein dem den denn der des die ' +
    'dies diese diesem diesen dieser doch du durch ein eine einem einen einer eines er es euch euer fuer fur ' +
    'gegen gibt hab habe haben hat hatte ich ihr ihre im in ins ist ja kann kein keine konnen konnt man mein ' +
    'meine meinem meinen meiner mich mir mit muss mussen nach nicht noch nur ob oder ohne sein seit sich sie sind ' +
    'so soll sollen uber um und uns unser unsere unter vom von vor wann warum was wegen welche welchem welchen ' +
    'welcher welches wem wen wenn wer werden wie wieviel wieviele wir wird wo woher wohin wurde wurden zu zum zur',
  fr:
    'a ai alors au aux avec avez avoir ce ces cette ceux chez combien comment d dans de des dois doit du elle ' +
    'elles en est et etes etre faut il ils j je l la le les leur leurs lui ma mais me mes moi mon n ne nos notre ' +
    'nous on ont ou par pas peut peux plus pour pourquoi puis qu quand que quel quelle quelles quels qui quoi s ' +
    'sa sans se ses si son sont sur t ta tes toi ton tu un une vos votre vous y',
  es:
    'a al alguna ante asi como con cual cuales cuando cuanta cuantas cuanto cuantos de del desde donde el ella ' +
    'ellos en entre es esta estan estas este esto estos fue ha hay la las le les lo los mas me mi mis muy nos ' +
    'nuestra nuestro o para pero por porque puede puedo que quien quienes se ser si sin sobre son su sus tambien ' +
    'te tengo tiene tienen tu tus un una unas uno unos y ya yo',
  it:
    'a ad ai al alla alle anche che chi ci come con cosa cui da dal dalla dei del della delle di dove e ed gli ha ' +
    'hanno ho i il in io l la le lo ma mi mia mio nei nel nella non o per perche piu posso possono puo qual quale ' +
    'quali quando quanta quante quanti quanto questa questo se si sia siete sono su sua suo sul sulla tra tu un ' +
    'una uno',
  pt:
    'a ao aos as ate com como da das de do dos e ela ele em entre esta este eu foi ha isso ja mais mas me meu ' +
    'minha muito na nao nas no nos o onde os ou para pela pelo pode podem por porque posso qual quais quando ' +
    'quanta quantas quanto quantos que quem se sem ser seu sua sao tem tenho um uma voce voces',
  nl:
    'aan al als bij dan dat de deze die dit door een en er geen heb hebben heeft het hij hoe hoeveel ik in is ja ' +
    'je jullie kan kunnen kunt maar me met mij mijn moet moeten na naar niet nog of om onder ons onze ook op over ' +
    'te toch tot u uit uw van veel voor waar waarom wanneer was wat we welk welke wie wij wordt zijn zo zonder ' +
    'zou',
}

const ENGLISH =
  'a about above after again against all also am an and any are as at be because been before being ' +
  'below between both but by can could did do does doing down during each few for from further had ' +
  'has have having he her here hers him himself his how i if in into is it its itself just me might ' +
  'more most must my myself no nor not now of off on once only or other our ours out over own please ' +
  'same she should so some such tell than that the their theirs them then there these they this ' +
  'those through to too under until up upon us very was we were what when where which while who whom ' +
  'whose why will with would you your yours'

export interface Grammar {
  /** as fields have it */
  locale: keyof typeof LISTS
  words: ReadonlySet<string>
}

let known: { english: ReadonlySet<string>; others: Grammar[] } | undefined

function lists() {
  known ??= {
    english: new Set(ENGLISH.split(' ')),
    others: Object.entries(LISTS).map(([locale, words]) => ({
      locale: locale as Grammar['locale'],
      words: new Set(words.split(' ')),
    })),
  }
  return known
}

/** @param word folded */
export const isEnglishGrammar = (word: string): boolean => lists().english.has(word)

/** Different words of grammar that a text needs to be of a language: `Los Angeles` is not Spanish. */
const FEWEST = 2

/**
 * The language that most of a text's grammar is of. Single letters do not count.
 * @param folded the text's words, in order
 * @param fewest how many different words of grammar it needs
 * @returns several if they fit as well; none for English, for one that is not known, and where it cannot be told
 */
export function grammarsOf(folded: readonly string[], fewest = FEWEST): Grammar[] {
  const words = folded.filter(({ length }) => length > 1)
  const english = words.filter(isEnglishGrammar).length
  const counted = lists().others.map((grammar) => {
    const own = words.filter((word) => grammar.words.has(word))
    return { grammar, count: own.length, isEnough: new Set(own).size >= fewest }
  })
  const most = Math.max(...counted.map(({ count }) => count))
  if (most <= english) return []
  return counted.filter(({ count, isEnough }) => count === most && isEnough).map(({ grammar }) => grammar)
}

/** How words of a field are searched: by the stems of its language. */
export type Language = { locale?: Grammar['locale']; stem?: true }

/** Fewer words of grammar than this do not tell the language of a collection: a list of names has some. */
const FEWEST_OF_TEXTS = 8
/** Characters that are read of all texts, and of each. */
const [MOST_READ, MOST_OF_ONE] = [200_000, 2_000]

/**
 * How imported texts are searched. English needs nothing, since questions are searched by English stems anyway.
 * @returns nothing where the language is not known
 */
export function languageOf(texts: readonly string[]): Language {
  const step = Math.max(1, Math.floor((texts.length * MOST_OF_ONE) / MOST_READ))
  const some = texts.filter((_, at) => at % step === 0).map((text) => text.slice(0, MOST_OF_ONE))
  const folded = some
    .join(' ')
    .toLowerCase()
    .normalize('NFD')
    .replace(/\p{M}/gu, '')
    .match(/\p{L}+/gu)
  const [grammar, ...others] = grammarsOf(folded ?? [], FEWEST_OF_TEXTS)
  return grammar === undefined || others.length > 0 ? {} : { locale: grammar.locale, stem: true }
}
