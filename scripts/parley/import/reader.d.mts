/** The types of reader.mjs for the Worker, whose compiler reads no JavaScript. */
export interface Article {
  title: string
  text: string
  url?: string
  tags?: string[]
}
export interface PageDocument {
  id: string
  [field: string]: unknown
}
export interface StoredDocument {
  source: string
  hash: string
  page?: string
}
export const AGENT: string
export const BUSY: Set<number>
export const SOURCE: string
export const HASH: string
export const PAGE: string
export function normal(address: string): string | undefined
export function belowOf(start: string): (address: string) => boolean
export function waitOf(after: string | null, attempt: number): number
export function asksRobots(said: string, what: 'noindex' | 'nofollow'): boolean
export function digestOf(data: string | Uint8Array, digits: number): Promise<string>
export function titleDigest(title: string): Promise<string>
export function pageIdOf(url: string): string
export function articleFields(model: string, language?: { locale?: string; stem?: true }): object[]
export function collectionOf(name: string, fields: object[]): Record<string, unknown>
export function readPage(
  html: string,
  address: string,
): {
  article: Article
  links: string[]
  canonical: string | undefined
  indexed: boolean
  site: { name?: string; color?: string }
}
export function fateOf(path: string): { isRead: boolean; error?: string }
export function readFile(
  text: string,
  path: string,
): { article: Article; indexed?: false } | { rows: object[] }
export function filesInArchive(
  packed: ReadableStream<Uint8Array>,
  wants: (path: string, size: number) => boolean,
): AsyncGenerator<{ path: string; bytes: Uint8Array }>
export function urlOf(path: string, base: string): string
export function encodePath(path: string): string
export function sectionOf(name: string): string
export function textArticle(text: string, path: string): Article
export function storedIn(jsonl: string): Map<string, StoredDocument>
export function documentsOfPage(
  address: string,
  article: Article,
  where: { source: string; section: string; path?: string },
  titles: string[],
): Promise<PageDocument[]>
export function planImport(
  documents: PageDocument[],
  stored: Map<string, StoredDocument>,
): { changed: PageDocument[]; former: string[]; gone: string[]; unchanged: number }
export type Get = (url: string) => Promise<{ status: number; bytes: Uint8Array } | { reason: string }>
export interface Rules {
  allows(url: string): boolean
  delay: number
  sitemaps: string[]
  closed?: string
}
export function robotsOf(origin: string, agent: string, get: Get): Promise<Rules>
export function listedPages(
  start: string,
  rules: Rules,
  get: Get,
): Promise<{ pages: string[]; isList: boolean }>
