/** Webhooks: what they are told of, a secret that is shown once, and what became of their messages. */
import { useState } from 'preact/hooks'
import type { InferOutput } from 'valibot'
import type * as responses from '../../../../src/api/parley/response-schemas'
import { EVENTS } from '../../../../src/db/webhook-events'
import { toConversation } from '../address'
import { mapped, read, send, useLoaded, useRead } from '../api'
import { CheckList, Dialog, Form, SecretDialog, useDraft } from '../parts/form'
import { ago, many, when } from '../parts/format'
import { ListPage, Table } from '../parts/list'
import { Act, Badges, Card, Shown } from '../parts/page'

type Webhook = InferOutput<typeof responses.Webhook>
type Delivery = InferOutput<typeof responses.Delivery>
type Event = Webhook['events'][number]

const TITLES: Record<Event, string> = {
  'turn.finished': 'A turn is answered',
  feedback: 'An answer is rated',
  'gaps.weekly': 'Once a week: what the documents lack',
  'import.finished': 'An import has ended',
  'handover.requested': 'A visitor asks for a person',
}

const NEW: Webhook = {
  ...{ name: '', url: '', events: ['turn.finished'], waiting: 0, full: false, created_at: 0, updated_at: 0 },
}

const pathOf = (name: string): string => `/webhooks/${encodeURIComponent(name)}`

export default function Webhooks() {
  const list = useRead<{ webhooks: Webhook[] }>('/webhooks')
  const sent = useLoaded(list.data && 'deliveries', (signal) =>
    read<{ deliveries: Delivery[] }>('/webhooks/deliveries?limit=50', signal),
  )
  return (
    <ListPage
      title="Webhooks"
      lead="Addresses that are told what happens here, by messages that are signed as Standard Webhooks are."
      list={mapped(list, ({ webhooks }) => webhooks)}
      empty={{
        icon: 'send',
        title: 'No webhooks yet',
        text: 'Register an address, and a program of yours learns of answers, feedback, imports and gaps.',
      }}
      kind="webhook"
      form={(close) => <WebhookDialog of={NEW} close={close} />}
      edit={(each, close) => <WebhookDialog of={each} close={close} />}
      item={({ name, url, events, waiting, full }) => ({
        name,
        about: url,
        path: pathOf(name),
        says: 'It is told of nothing any more, and messages that still wait are deleted.',
        children: (
          <>
            <Badges of={events} />
            {waiting > 0 && <span class="badge warn">{many(waiting, 'message')} waiting</span>}
            {full && <span class="badge bad">too many wait: new ones are left out</span>}
            <Act
              label="Send a test"
              busy="Sending …"
              run={() => send('POST', `${pathOf(name)}/test`).then(sent.reload)}
            />
          </>
        ),
      })}
    >
      {list.data && (
        <Card title="Messages of the last seven days">
          <Shown of={sent}>
            {({ deliveries }) =>
              deliveries.length > 0 ? (
                <Deliveries of={deliveries} done={sent.reload} />
              ) : (
                <p class="soft">There are none yet. The latest 50 are listed here.</p>
              )
            }
          </Shown>
        </Card>
      )}
    </ListPage>
  )
}

const STATES = { waiting: 'waiting', delivered: 'delivered', given_up: 'given up' }
const LOOKS = { waiting: 'badge warn', delivered: 'badge good', given_up: 'badge bad' }

const Deliveries = ({ of, done }: { of: Delivery[]; done: () => void }) => (
  <Table label="Messages" head={['Event', 'To', 'When', 'State', 'Again']}>
    {of.map(({ id, event, webhook, created_at, conversation_id: conversation, ...each }) => (
      <tr key={id}>
        <th scope="row">
          {conversation === undefined ? event : <a href={toConversation(conversation)}>{event}</a>}
        </th>
        <td>{webhook}</td>
        <td>
          <time dateTime={new Date(created_at).toISOString()} title={when(created_at)}>
            {ago(created_at)}
          </time>
        </td>
        <td>
          <span class={LOOKS[each.state]}>{STATES[each.state]}</span> {each.outcome}
          {each.next_at !== undefined && each.tries > 0 && ` Again ${when(each.next_at)}.`}
        </td>
        <td>
          {each.state !== 'delivered' && (
            <Act
              label="Send again"
              busy="Sending …"
              run={() => send('POST', `/webhooks/deliveries/${id}`).then(done)}
            />
          )}
        </td>
      </tr>
    ))}
  </Table>
)

/** A new webhook, or what is to change about one. Its secret is shown where it is new. */
function WebhookDialog({ of, close }: { of: Webhook; close: () => void }) {
  const isNew = of.name === ''
  const { draft, text, check } = useDraft({ name: of.name, url: of.url, renew: false })
  const [events, setEvents] = useState<readonly Event[]>(of.events)
  const [secret, setSecret] = useState<string>()
  const save = async () => {
    const { name, url, renew } = draft
    const body = { url, events, ...(renew && { new_secret: true }) }
    const { secret } = await send<Webhook>('PUT', pathOf(name), body)
    if (secret === undefined) close()
    else setSecret(secret)
  }
  if (secret !== undefined)
    return (
      <SecretDialog
        title="The secret of the webhook"
        text={secret}
        of="secret"
        says="Your program checks by it that messages come from here."
        close={close}
      />
    )
  return (
    <Dialog title={isNew ? 'New webhook' : `Edit ${of.name}`} close={close}>
      <Form action={isNew ? 'Register' : 'Save'} disabled={events.length === 0} save={save}>
        {isNew && text('name', 'Name', { required: true, pattern: '[a-z0-9\\-]{1,64}', placeholder: 'crm' })}
        {text('url', 'Address', { type: 'url', required: true, placeholder: 'https://example.com/parley' })}
        <CheckList
          label="What is it told of?"
          options={EVENTS.map((event) => [event, TITLES[event]] as const)}
          chosen={events}
          change={setEvents}
        />
        {!isNew && check('renew', 'Give it a new secret')}
      </Form>
    </Dialog>
  )
}
