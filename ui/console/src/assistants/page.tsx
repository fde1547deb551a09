/** Assistants: the list, and one to change beside a live preview of its widget. */
import { h } from 'preact'
import { useState } from 'preact/hooks'
import type { Hours } from '../../../../src/lib/hours'
import { go, place, to, toAsk } from '../address'
import { key, mapped, Refusal, read, send, useLoaded, useRead } from '../api'
import { type Assistant, type Choices, listed, loadChoices } from '../chat/choices'
import { Button } from '../parts/button'
import {
  CheckField,
  CheckList,
  Form,
  given,
  linesIn,
  numberIn,
  optionsOf,
  SelectField,
  useDraft,
} from '../parts/form'
import { many } from '../parts/format'
import { ListPage } from '../parts/list'
import { NotFound, Page, Problem, Shown } from '../parts/page'
import type { Tool } from '../tools/page'

const pathOf = (name: string): string => `/assistants/${encodeURIComponent(name)}`

export default function Assistants() {
  const [name, more] = place.value.rest
  if (more !== undefined) return <NotFound />
  return name === undefined ? <List /> : <AssistantPage key={name} name={name} />
}

function List() {
  const list = useRead<{ assistants: Assistant[] }>('/assistants')
  return (
    <ListPage
      title="Assistants"
      lead="An assistant is collections, a model and instructions under one name. The widget and chat clients ask it."
      list={mapped(list, ({ assistants }) => assistants)}
      empty={{
        icon: 'assistants',
        title: 'No assistants yet',
        text: 'Make one over your collections, try it here, and paste it into a page.',
      }}
      kind="assistant"
      action={<Button label="New assistant" kind="primary" icon="plus" href={to(['assistants', 'new'])} />}
      item={({ name, model, collections = [], searches = [], questions }) => ({
        name,
        href: to(['assistants', name]),
        about: `searches ${[...collections, ...searches.map(({ collection }) => collection)].join(', ')} · answers with ${model}`,
        path: pathOf(name),
        says: 'Pages that show it stop answering. Its collections and conversations stay.',
        children: questions.length > 0 && (
          <span class="badge">{many(questions.length, 'first question')}</span>
        ),
      })}
    />
  )
}

// =============================================================================
// One assistant: its form, and its widget beside it.

const EMPTY: AssistantBody = { model: '', collections: [], questions: [], followups: true }

function AssistantPage({ name }: { name: string }) {
  const isNew = name === 'new'
  const loaded = useLoaded(`assistant ${name}`, async (signal): Promise<AssistantBody> => {
    if (isNew) return EMPTY
    const {
      name: _,
      created_at: __,
      updated_at: ___,
      handover_secret: ____,
      ...body
    } = await read<Assistant>(pathOf(name), signal)
    return body
  })
  const choices = useLoaded('choices', async (signal) => {
    const [choices, stored] = await Promise.all([
      loadChoices(signal),
      listed<{ tools: Tool[] }>('/tools', signal),
    ])
    return { choices, tools: stored?.tools }
  })
  const [saved, setSaved] = useState(0)
  return (
    <Page
      title={isNew ? 'New assistant' : name}
      up={{ title: 'Assistants', href: to(['assistants']) }}
      lead={
        isNew
          ? 'Name it, choose what it searches and who answers.'
          : loaded.data && 'Saved changes show in the preview.'
      }
      actions={
        !isNew &&
        loaded.data && <Button label="Ask" kind="primary" icon="chat" href={toAsk('assistant', name)} />
      }
    >
      <Shown of={loaded}>
        {(body) => (
          <Shown of={choices}>
            {(known) => (
              <div class="split">
                <AssistantForm
                  name={isNew ? undefined : name}
                  body={body}
                  choices={known.choices}
                  stored={known.tools}
                  saved={(as) => {
                    setSaved((count) => count + 1)
                    if (as !== name) go(to(['assistants', as]), { replace: true })
                  }}
                />
                {!isNew && <Preview key={saved} assistant={name} />}
              </div>
            )}
          </Shown>
        )}
      </Shown>
    </Page>
  )
}

/** The tools that an assistant can list: those that are built in, those that are stored, and those that it lists. */
function toolsFor(listed: readonly string[], stored: readonly Tool[] | undefined) {
  const titles = new Map(stored?.map(({ name, title }) => [name, title ?? name]))
  // A key that may not list tools knows their names alone.
  const isGone = (name: string) => stored !== undefined && !titles.has(name)
  const others = listed.filter((name) => !Object.hasOwn(BUILT_IN, name) && !titles.has(name))
  return [
    ...Object.entries(BUILT_IN),
    ...titles,
    ...others.map((name) => [name, isGone(name) ? `${name} (deleted)` : name] as const),
  ]
}

interface FormProps {
  /** undefined for a new one */
  name: string | undefined
  body: AssistantBody
  choices: Choices
  /** undefined where the key may not list them */
  stored: Tool[] | undefined
  saved: (name: string) => void
}

const BUILT_IN = { search: 'Search the documents again', document: 'Read a document whole' }

const WAYS = { '': 'Not at all', url: 'An address that a button opens', webhook: 'A form, sent to a webhook' }

const weekday = new Intl.DateTimeFormat('en', { weekday: 'long', timeZone: 'UTC' })
/** The first of January 2024 was a Monday. */
const WEEK = (['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const).map(
  (day, index) => [day, weekday.format(Date.UTC(2024, 0, 1 + index))] as const,
)

const TIME = { required: true, pattern: '([01][0-9]|2[0-3]):[0-5][0-9]|24:00', title: 'Such as 09:00' }

const USUAL_HOURS = (): Hours => ({
  days: ['mon', 'tue', 'wed', 'thu', 'fri'],
  from: '09:00',
  to: '17:00',
  time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
})

const wayOf = (handover: AssistantBody['handover']): keyof typeof WAYS => {
  if (handover?.url !== undefined) return 'url'
  return handover?.webhook === undefined ? '' : 'webhook'
}

function AssistantForm({ name, body, choices, stored, saved }: FormProps) {
  const { draft, set, text, choice, check } = useDraft({
    ...body,
    tools: body.tools ?? [],
    as: name ?? '',
    system_prompt: body.system_prompt ?? '',
    questions: body.questions.join('\n'),
    origins: body.allowed_origins?.join('\n') ?? '',
    people: wayOf(body.handover),
    reachedAt: body.handover?.url ?? body.handover?.webhook ?? '',
    after: String(body.handover?.after ?? ''),
    keepsHours: body.handover?.hours !== undefined,
    ...(body.handover?.hours ?? USUAL_HOURS()),
    outside: body.handover?.outside ?? '',
  })
  const [kept, setKept] = useState<typeof draft>()
  const models = choices.models?.map(({ id }) => id) ?? []
  const model = draft.model || models[0] || ''
  const save = async () => {
    const { as, origins, questions, tools, people, reachedAt, after, keepsHours, ...more } = draft
    const { days, from, to, time_zone, outside, ...others } = more
    const { allowed_origins: _, handover: __, system_prompt, ...rest } = others
    setKept(undefined)
    const handover = {
      [people]: reachedAt,
      after: numberIn(after),
      ...(keepsHours && { hours: { days, from, to, time_zone }, outside }),
    }
    await send('PUT', pathOf(as), {
      ...rest,
      model,
      questions: linesIn(questions),
      ...given({ tools, system_prompt, allowed_origins: linesIn(origins) }),
      ...(people !== '' && { handover: given(handover) }),
    })
    setKept(draft)
    saved(as)
  }
  return (
    <Form
      class="panel-card frame form"
      busy="Saving …"
      save={save}
      beside={
        <span role="status" class="saved soft">
          {kept === draft && 'Saved.'}
        </span>
      }
    >
      {name === undefined &&
        text('as', 'Name', {
          required: true,
          pattern: '[a-z0-9\\-]{1,64}',
          title: '1 to 64 lower-case letters, digits and hyphens',
        })}
      {draft.searches ? (
        <p class="hint">
          It has searches of its own, on {draft.searches.map(({ collection }) => collection).join(', ')}:
          change them over the API.
        </p>
      ) : (
        <CheckList
          label="Collections"
          options={optionsOf(choices.collections?.map((each) => each.name) ?? [])}
          chosen={draft.collections ?? []}
          change={(collections) => set({ collections })}
          hint={
            choices.collections?.length === 0 && (
              <>
                There is none yet. <a href={to(['import'])}>Import files first</a>.
              </>
            )
          }
        />
      )}
      <SelectField
        label="Model"
        required
        value={model}
        options={optionsOf(models)}
        hint={
          models.length === 0 && (
            <>
              There is none yet. <a href={to(['models'], { new: '1' })}>Make one first</a>.
            </>
          )
        }
        change={(chosen) => set({ model: chosen })}
      />
      <CheckList
        label="Tools"
        options={toolsFor(draft.tools, stored)}
        chosen={draft.tools}
        change={(tools) => set({ tools })}
        hint={
          <>
            What its model may call by itself. <a href={to(['tools'])}>Tools</a> makes more.
          </>
        }
      />
      {text('system_prompt', 'Instructions', {
        rows: 4,
        placeholder: "Leave empty to use the model's prompt",
      })}
      {text('questions', 'First questions, one a line', { rows: 3 })}
      {text('origins', 'Allowed websites (one per line)', { rows: 2, placeholder: 'Empty: every origin' })}
      {check('followups', 'Suggest what to ask next')}
      {check('search', 'Let its pages search while somebody types')}
      {check('attachments', 'Take texts and PDFs with a question')}
      <CheckField
        label="Let the model search again where the first search is not enough"
        checked={draft.retrieval === 'agentic'}
        change={(isAgentic) => set({ retrieval: isAgentic ? 'agentic' : 'plain' })}
      />
      {choice('people', 'How visitors reach people', Object.entries(WAYS))}
      {draft.people !== '' && (
        <>
          {text('reachedAt', draft.people === 'url' ? 'Address' : 'Webhook', {
            required: true,
            placeholder:
              draft.people === 'url' ? 'mailto:help@example.com' : 'https://desk.example.com/parley',
            hint: draft.people === 'webhook' && (
              <>
                It gets the form and the conversation, signed. <code>GET /assistants/NAME</code> has the
                secret to check that.
              </>
            ),
          })}
          {text('after', 'Offer it after so many declined answers', {
            pattern: '10|[1-9]',
            title: '1 to 10',
            placeholder: 'Empty: the button alone',
          })}
          {check('keepsHours', 'Only within office hours')}
        </>
      )}
      {draft.people !== '' && draft.keepsHours && (
        <>
          <CheckList label="Days" options={WEEK} chosen={draft.days} change={(days) => set({ days })} />
          {text('from', 'From', TIME)}
          {text('to', 'To', TIME)}
          {text('time_zone', 'Time zone', { required: true, options: Intl.supportedValuesOf('timeZone') })}
          {text('outside', 'What visitors read outside of them', { rows: 2 })}
        </>
      )}
    </Form>
  )
}

const SCRIPT = '/widget/parley-chat.js'

interface WidgetProps {
  assistant: string
  /** title and accent; absent: its own */
  heading?: string
  accent?: string | undefined
  /** hears of each answer. @param conversation its id */
  answered?: (conversation: string) => void
}

/** The widget as a page shows it, asking with the console's own key: by its other name, as Preact keeps `key` to itself. */
export function Widget({ assistant, heading, accent, answered }: WidgetProps) {
  const script = useLoaded('widget', () => import(SCRIPT))
  if (script.error)
    return <Problem error={new Refusal(0, 'The widget could not be loaded. Reload the page.')} />
  if (!script.data) return null
  return h('parley-chat', {
    class: 'preview',
    theme: 'auto',
    'api-key': key.peek(),
    assistant,
    heading,
    style: { '--parley-accent': accent },
    'onparley-answer': ({ detail }: CustomEvent) => answered?.(detail.conversation),
  })
}

const Preview = ({ assistant }: { assistant: string }) => (
  <section aria-labelledby="preview-title">
    <h2 id="preview-title" class="field-label">
      Preview
    </h2>
    <Widget assistant={assistant} />
  </section>
)

/** An assistant as PUT /assistants/{name} takes it. What this page does not show is kept as it is. */
type AssistantBody = Partial<Assistant> & Pick<Assistant, 'model' | 'questions'>
