/** Small talk: what people say to somebody rather than ask of documents, and the replies. */
import { once, regExp } from '../../lib/once'

const ABOUT =
  'I am the built-in answerer of Parley, a program and not a person. I answer questions from the documents here, in ' +
  'their own sentences and with their places.'
const ASK = 'Ask me something about the documents.'

/** Words that accompany small talk without changing it. */
const FILLER =
  /\b(?:so|very|really|well|oh|ok|okay|um|uh|hmm|please|there|you|guys|everyone|all|again|much|a lot|lots|for (?:your|the|all the|all your) (?:help|answers?|time)|that (?:helped|helps|is helpful|was helpful)|this (?:helped|helps)|for that|for now|today|my friend|mate|bot|robot|parley|sir|and)\b/g

const GREETING =
  /^(?:hi+|hey+|hello+|hallo|hiya|howdy|yo|greetings|sup|good (?:morning|afternoon|evening|day)|welcome|namaste|hola|bonjour|salut|ciao|guten (?:tag|morgen|abend)|moin|servus|konnichiwa)$/
const THANKS =
  /^(?:thanks?|thank|thx|ty|cheers|merci|danke|gracias|arigato|appreciate it|i appreciate it|great|perfect|awesome|nice|cool|good|excellent|wonderful|amazing|got it|i see|i understand|understood|makes sense|that makes sense|no problem|never mind|nevermind|alright|fine|sounds good|good job|well done|nice work|great work)$/
const FAREWELL =
  /^(?:bye+|goodbye|bye bye|good ?night|see|see ya|see later|later|cu|farewell|take care|have a (?:nice|good|great) (?:day|one|evening|weekend)|that is|that's it|i am done|i'm done)$/
const HOW_ARE_YOU =
  /^(?:how are|how are doing|how is it going|how's it going|how do do|what is up|what's up|whats up|wassup|how was (?:your )?day|how have been|are ok|nice to meet|pleased to meet)$/
const WHO_ARE_YOU = once(() => [
  /^(?:who|what) (?:are|r) (?:you|u)\b/,
  /^(?:what|whats|what's|what is) (?:is )?your name\b/,
  /^(?:are|r) (?:you|u) (?:an? |the )?(?:real |actual |just )?(?:ai|a\.i\.|bot|chat ?bot|robot|human|person|people|machine|computer|program|real|alive|sentient|conscious|chatgpt|gpt|claude|gemini|llm|language model|assistant)\b/,
  /^(?:what|how) (?:can|do|could) you (?:help|do|answer|work)(?: (?:me|with|for me|us|here|about))*$/,
  /^(?:can|could|will|would) you (?:please )?help(?: me| us)?$/,
  /^what (?:can|could|should|may) (?:i|we) ask(?: you| here| about)*$/,
  /^what do you know(?: about)?$/,
  /^(?:is )?(?:anybody|anyone|somebody|someone) (?:there|here|home)$/,
  /^(?:who|what) (?:made|built|created|wrote|trained) you$/,
  /^(?:tell me about|introduce) yourself$/,
  /^how old are you$/,
  /^where (?:are|do) you (?:from|live)$/,
  /^do you (?:love|like|hate|know) me$/,
])
/** Remarks to the answerer itself, or requests for more than quoting. */
const TO_ME = once(() => [
  /^(?:you are|you're|ur|youre) (?:so |very |really |an? |the |such an? |pretty |not |my )*[\p{L}]+$/u,
  /^i (?:love|hate|like|miss) you$/,
  /^(?:tell|say|make|give|sing|write)(?: me| us)? (?:an? |another |some )?(?:\p{L}+ )?(?:jokes?|stor(?:y|ies)|poems?|songs?|riddles?|haikus?|limericks?)\b/u,
  /^(?:shut up|go away|stop it|leave me alone|test(?:ing)?|lol|haha+|wow|help)$/,
])

/** Only digits and symbols: a sum, or nothing at all. */
const NO_WORDS = regExp(String.raw`^[^\p{L}]*$`, 'u')

/**
 * Replies to a greeting, to thanks, to a question about the answerer, and to text that is not a question. Returns
 * undefined if the documents must be searched. Small talk before a question is ignored.
 */
export function smallTalk(text: string): string | undefined {
  const parts = partsOf(text)
  if (parts.length === 0) {
    return NO_WORDS().test(text) ? `That is no question that documents could answer. ${ASK}` : undefined
  }
  const replies = parts.map(replyTo)
  if (replies.includes(undefined)) return undefined
  const [first, ...further] = replies.filter((reply) => reply !== '')
  // A greeting with a question gets an answer, not only a greeting.
  return further.findLast((reply) => reply !== first) ?? first ?? 'All right. Ask on whenever you like.'
}

/** Sentences in lower case, without punctuation. */
const partsOf = (text: string): string[] =>
  text.length > 200
    ? [text]
    : text
        .toLowerCase()
        .replace(/[\u2019`]/g, "'")
        .split(/[.!?,;:()\n\u2026\u2014]+/)
        .map((part) =>
          part
            .replace(/[^\p{L}\p{N}' ]+/gu, ' ')
            .replace(/\s+/g, ' ')
            .trim(),
        )
        .filter((part) => /\p{L}/u.test(part))

/** '' if the part needs no reply of its own; undefined if it is no small talk. */
function replyTo(part: string): string | undefined {
  if (part.length > 80) return undefined
  if (WHO_ARE_YOU().some((pattern) => pattern.test(part))) return ABOUT
  if (TO_ME().some((pattern) => pattern.test(part))) return `I can only quote the documents here. ${ASK}`
  const bare = part.replace(FILLER, ' ').replace(/\s+/g, ' ').trim()
  const said = bare === '' ? part : bare
  if (GREETING.test(said)) return `Hello! ${ASK}`
  if (HOW_ARE_YOU.test(said)) return `I am a program, and I am running. ${ASK}`
  if (THANKS.test(said)) return 'You are welcome. Ask on whenever you like.'
  if (FAREWELL.test(said)) return 'Goodbye! Come back whenever you like.'
  return bare === '' ? '' : undefined
}
