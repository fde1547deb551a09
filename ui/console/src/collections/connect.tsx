/** Connects a collection of an existing cluster, or changes its nodes and credentials, and shows the fields that the cluster has. */
import { useState } from 'preact/hooks'
import { to } from '../address'
import { send } from '../api'
import { Button } from '../parts/button'
import { Dialog, Form, given, SelectField, useDraft } from '../parts/form'
import { many } from '../parts/format'
import { Schema } from './schema'
import { type Collection, type Engine, pathOf } from './wire'

interface ConnectProps {
  /** a connected collection, whose nodes and credentials change */
  of?: Collection
  close: (connected: boolean) => void
}

export function ConnectDialog({ of, close }: ConnectProps) {
  const [made, setMade] = useState<Collection>()
  const done = (collection: Collection) => (of === undefined ? setMade(collection) : close(true))
  return (
    <Dialog
      title={of === undefined ? 'Connect a cluster' : `Connect ${of.name} again`}
      close={() => close(made !== undefined)}
    >
      {made ? <Connected collection={made} /> : <ConnectForm of={of} done={done} />}
    </Dialog>
  )
}

/** What the cluster says of the collection. */
const Connected = ({ collection }: { collection: Collection }) => (
  <div class="dialog-body form">
    <p role="status">
      {collection.name} is connected. The cluster has {many(collection.num_documents, 'document')} there, with{' '}
      {many(collection.fields.length, 'field')}.
    </p>
    <Schema collection={collection} />
    <div class="dialog-foot line">
      <Button
        label={`Search ${collection.name}`}
        kind="primary"
        href={to(['collections', collection.name])}
      />
    </div>
  </div>
)

function ConnectForm({ of, done }: { of: Collection | undefined; done: (made: Collection) => void }) {
  const { draft, set, text, choice } = useDraft(() =>
    of?.engine ? draftFrom(of.name, of.engine) : draftOf('typesense'),
  )
  const { type, signIn } = draft
  const engine = ENGINES[type]
  return (
    <Form
      action="Connect"
      busy="Asking the cluster …"
      save={async () => {
        const engine = engineOf(draft)
        done(
          of === undefined
            ? await send<Collection>('POST', '/collections', { name: draft.name, engine })
            : await send<Collection>('PATCH', pathOf(of.name), { engine }),
        )
      }}
    >
      <SelectField
        id="engine-type"
        label="Engine"
        value={type}
        options={Object.entries(ENGINES).map(([id, { title }]) => [id, title] as const)}
        change={(engine) => set({ ...draftOf(engine as EngineType), name: draft.name })}
      />
      {of === undefined && text('name', 'Name in Parley', { required: true })}
      {engine.example !== '' &&
        text('nodes', 'Nodes', {
          rows: 3,
          required: true,
          placeholder: engine.example,
          hint: 'One URL on each line. Parley must be allowed to call these hosts (ALLOWED_HOSTS).',
        })}
      {engine.signIns.length > 1 &&
        choice(
          'signIn',
          'Credentials',
          engine.signIns.map((id) => [id, SIGN_INS[id]] as const),
        )}
      {signIn === 'password' && text('user', 'User', { required: true })}
      {signIn === 'api_token' && text('account', 'Account ID', { required: true })}
      {signIn !== 'none' &&
        text('secret', signIn === 'password' ? 'Password' : SIGN_INS[signIn], {
          type: 'password',
          required: true,
          hint: 'It is stored encrypted, sent to the nodes only, and never shown again.',
        })}
      {text('there', engine.there, { placeholder: draft.name || 'the same name as in Parley' })}
    </Form>
  )
}

// =============================================================================
// The engines that a collection can be connected to, and what each needs: pure.

type EngineType = 'typesense' | 'opensearch' | 'ai-search'
type SignIn = 'api_key' | 'password' | 'api_token' | 'none'

const SIGN_INS: Record<SignIn, string> = {
  api_key: 'API key',
  password: 'User and password',
  api_token: 'API token',
  none: 'None',
}

interface EngineForm {
  title: string
  /** a node; '' where it has none */
  example: string
  /** the first is chosen at first */
  signIns: SignIn[]
  /** what holds the documents there */
  there: string
  /** its property of `engine` */
  property: 'collection' | 'index' | 'instance'
}

const ENGINES: Record<EngineType, EngineForm> = {
  typesense: {
    title: 'Typesense',
    example: 'https://node-1.example.com',
    signIns: ['api_key'],
    there: 'Collection there',
    property: 'collection',
  },
  opensearch: {
    title: 'OpenSearch or Elasticsearch',
    example: 'https://search.example.com:9200',
    signIns: ['password', 'api_key', 'none'],
    there: 'Index there',
    property: 'index',
  },
  'ai-search': {
    title: 'Cloudflare AI Search',
    example: '',
    signIns: ['api_token', 'none'],
    there: 'Instance there',
    property: 'instance',
  },
}

/** An empty form. */
const draftOf = (type: EngineType) => ({
  type,
  name: '',
  nodes: '',
  signIn: ENGINES[type].signIns[0]!,
  user: '',
  account: '',
  secret: '',
  there: '',
})

/** The form of a connected collection. Its secrets are never shown: they are typed again. */
const draftFrom = (name: string, engine: Engine): ReturnType<typeof draftOf> => {
  const type = engine.type as EngineType
  return {
    ...draftOf(type),
    name,
    nodes: engine.nodes?.join('\n') ?? '',
    account: engine.account_id ?? '',
    there: engine[ENGINES[type].property] ?? '',
  }
}

/** The `engine` that a form describes. */
function engineOf(draft: ReturnType<typeof draftOf>): Record<string, unknown> {
  const { type, nodes, signIn, user, account, secret, there } = draft
  const { example, property } = ENGINES[type]
  const told = signIn === 'password' ? { username: user, password: secret } : { [signIn]: secret }
  return {
    type,
    credentials: signIn === 'none' ? {} : told,
    ...(example !== '' && { nodes: nodes.split(/\s+/).filter(Boolean) }),
    ...given({ account_id: signIn === 'api_token' ? account : '', [property]: there }),
  }
}
