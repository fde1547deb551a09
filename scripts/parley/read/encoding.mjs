/** Bytes as text. Spreadsheets and old editors save in the encoding of their country and say nowhere which. */
import chardet from 'chardet'

/** More of a file tells no more about its encoding. */
const SAMPLE_BYTES = 1 << 18

/**
 * The encoding of a text that does not name one: that of its byte order mark, else UTF-8 if it is that, else the likeliest.
 * @param {Uint8Array} bytes
 * @returns {string} a label of the Encoding Standard, 4.2
 */
export function encodingOf(bytes) {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le'
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be'
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return 'utf-8'
  } catch {
    // The first letter that is none of ASCII's may stand far behind.
    const first = bytes.findIndex((byte) => byte > 0x7f)
    const from = Math.max(0, first - SAMPLE_BYTES / 2)
    const likeliest = chardet.detect(bytes.subarray(from, from + SAMPLE_BYTES)) ?? ''
    try {
      return new TextDecoder(likeliest).encoding
    } catch {
      return 'windows-1252'
    }
  }
}

/**
 * @param {Uint8Array} bytes
 * @returns {string} without a byte order mark
 */
export const decodeText = (bytes) => new TextDecoder(encodingOf(bytes)).decode(bytes)
