/** Reads the text of a PDF that a visitor attaches: the reader of imports, as a part that is loaded when one comes (load.ts). */
import { readPdf } from '../../../scripts/parley/read/pdf.mjs'

export interface Pdf {
  /** @throws Error for one that is protected, or holds pictures of pages alone */
  textOf(bytes: Uint8Array, name: string): Promise<string>
}

;(globalThis as Record<symbol, unknown>)[Symbol.for('parley-chat.pdf')] = {
  // The places that links of an import lead to are nothing to read.
  textOf: async (bytes, name) => (await readPdf(bytes, name)).article.text.replace(/ \{#page=[^}]*\}/g, ''),
} satisfies Pdf
