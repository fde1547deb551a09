/** Bytes as text. Spreadsheets and old editors save in the encoding of their country and say nowhere which. */
import chardet from 'chardet'
import sniff from 'html-encoding-sniffer'

/** More of a file tells no more about its encoding. */
const SAMPLE_BYTES = 1 << 18
/** Fewer bytes outside of ASCII do not tell one encoding from another. */
const FEWEST_SIGNS = 6
/** How much likelier than Windows-1252 another encoding has to be, of 100. */
const LEAD = 10
const WESTERN = 'windows-1252'

/**
 * The encoding of a text that does not name one: that of its byte order mark, else UTF-8 if it is that but for a few broken
 * letters, else Windows-1252 unless another one is clearly likelier.
 * @param {Uint8Array} bytes
 * @returns {string} a name of the Encoding Standard, 4.2
 */
function encodingOf(bytes) {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le'
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be'
  // The first letter that is none of ASCII's may stand far behind.
  const first = bytes.findIndex((byte) => byte > 0x7f)
  if (first < 0) return 'utf-8'
  const from = Math.max(0, first - SAMPLE_BYTES / 2)
  const sample = bytes.subarray(from, from + SAMPLE_BYTES)
  if (isUtf8(sample)) return 'utf-8'
  if (sample.filter((byte) => byte > 0x7f).length < FEWEST_SIGNS) return WESTERN
  const [best, ...others] = chardet.analyse(sample).map(({ name, confidence }) => ({
    encoding: nameOf(name),
    confidence,
  }))
  const western = others.find(({ encoding }) => encoding === WESTERN)?.confidence ?? 0
  return best?.encoding !== undefined && best.confidence >= western + LEAD ? best.encoding : WESTERN
}

/** Whether bytes are UTF-8, though a letter may be broken: at the end of the sample, or by a program. @param {Uint8Array} sample */
function isUtf8(sample) {
  const letters = new TextDecoder().decode(sample).match(/[^\p{ASCII}]/gu) ?? []
  const broken = letters.filter((letter) => letter === '\uFFFD').length
  return broken * 10 <= letters.length - broken
}

/** @param {string} label @returns {string | undefined} nothing for UTF-8, which it is not, and what nobody can decode */
function nameOf(label) {
  try {
    const { encoding } = new TextDecoder(label)
    return encoding === 'utf-8' ? undefined : encoding
  } catch {
    return undefined
  }
}

/** Windows-1252 from 0x80 on. Node before 23 leaves these as control characters. */
const SIGNS = '€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008DŽ\u008F\u0090‘’“”•–—˜™š›œ\u009DžŸ'

/**
 * @param {Uint8Array} bytes
 * @param {string} [named] the encoding that the text or its server names
 * @returns {string} without a byte order mark; each line ends with \n, whatever it ended with
 */
export function decodeText(bytes, named) {
  const encoding = named ?? encodingOf(bytes)
  const text = new TextDecoder(encoding).decode(bytes).replace(/\r\n?/g, '\n')
  if (nameOf(encoding) !== WESTERN) return text
  return text.replace(/[\u0080-\u009F]/g, (sign) => SIGNS[sign.charCodeAt(0) - 0x80] ?? sign)
}

/**
 * @param {Uint8Array} bytes of a page
 * @param {string} [charset] as the server says
 */
export const decodeHtml = (bytes, charset) =>
  decodeText(bytes, sniff(bytes, { transportLayerEncodingLabel: charset, defaultEncoding: '' }) || undefined)
