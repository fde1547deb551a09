/** What people call the engines of collections. */
const NAMES: Record<string, string> = {
  typesense: 'Typesense',
  opensearch: 'OpenSearch',
  'ai-search': 'AI Search',
}

export const engineName = (engine: string): string => NAMES[engine] ?? engine
