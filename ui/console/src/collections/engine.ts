/** The engines that a collection can be connected to, and what each needs: pure. */

export type EngineType = 'typesense' | 'opensearch' | 'ai-search'
export type SignIn = 'api_key' | 'password' | 'api_token' | 'none'

export const SIGN_INS: Record<SignIn, string> = {
  api_key: 'API key',
  password: 'User and password',
  api_token: 'API token',
  none: 'None',
}

interface EngineForm {
  title: string
  hasNodes: boolean
  /** a node */
  example: string
  /** the first is chosen at first */
  signIns: SignIn[]
  /** what holds the documents there */
  there: string
  /** its property of `engine` */
  property: 'collection' | 'index' | 'instance'
}

export const ENGINES: Record<EngineType, EngineForm> = {
  typesense: {
    title: 'Typesense',
    hasNodes: true,
    example: 'https://node-1.example.com',
    signIns: ['api_key'],
    there: 'Collection there',
    property: 'collection',
  },
  opensearch: {
    title: 'OpenSearch or Elasticsearch',
    hasNodes: true,
    example: 'https://search.example.com:9200',
    signIns: ['password', 'api_key', 'none'],
    there: 'Index there',
    property: 'index',
  },
  'ai-search': {
    title: 'Cloudflare AI Search',
    hasNodes: false,
    example: '',
    signIns: ['api_token', 'none'],
    there: 'Instance there',
    property: 'instance',
  },
}

export interface EngineDraft {
  type: EngineType
  name: string
  nodes: string
  signIn: SignIn
  user: string
  account: string
  secret: string
  there: string
}

/** An empty form. */
export const draftOf = (type: EngineType): EngineDraft => ({
  type,
  name: '',
  nodes: '',
  signIn: ENGINES[type].signIns[0]!,
  user: '',
  account: '',
  secret: '',
  there: '',
})

/** The `engine` that a form describes. */
export function engineOf({
  type,
  nodes,
  signIn,
  user,
  account,
  secret,
  there,
}: EngineDraft): Record<string, unknown> {
  const { hasNodes, property } = ENGINES[type]
  const credentials =
    signIn === 'none'
      ? {}
      : signIn === 'password'
        ? { username: user, password: secret }
        : { [signIn]: secret }
  return {
    type,
    credentials,
    ...(hasNodes && { nodes: nodes.split(/\s+/).filter((node) => node !== '') }),
    ...(signIn === 'api_token' && { account_id: account }),
    ...(there !== '' && { [property]: there }),
  }
}
