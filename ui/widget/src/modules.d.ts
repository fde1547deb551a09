declare module '*.css' {
  const text: string
  export default text
}

declare module '*/scripts/parley/read/pdf.mjs' {
  /** @throws Error for a PDF that is protected, or holds pictures of pages alone */
  export function readPdf(
    bytes: Uint8Array,
    path: string,
  ): Promise<{ article: { title: string; text: string } }>
}
