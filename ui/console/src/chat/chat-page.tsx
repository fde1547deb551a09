/** The chat: a conversation, and beside it why its answers are what they are. */
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { Card } from '../../../widget/src/card'
import { Composer } from '../../../widget/src/composer'
import type { Evidence } from '../../../widget/src/evidence'
import { grammarOf, lex, render } from '../../../widget/src/markdown'
import type { Turn } from '../../../widget/src/session'
import { Draft } from '../../../widget/src/storage'
import { isRunning } from '../../../widget/src/turn'
import { TurnsView } from '../../../widget/src/turns-view'
import { go, NEW, pageOf, to } from '../address'
import { key, type Loaded, useKept, useLoaded } from '../api'
import { Button, Icon } from '../parts/button'
import { duration, many } from '../parts/format'
import { Empty, Problem, useTitle } from '../parts/page'
import { colour } from '../parts/prose'
import { type Chat, chat as currentChat, turnKey } from './chat'
import { type Choices, loadChoices, possible } from './choices'
import { chosen, inSentence, SettingsDialog, settings } from './settings'
import { Inspector } from './why'
import { WORDS } from './words'

const MARKDOWN = { lex, render, grammarOf }
const WIDE = '(min-width: 1180px)'
const PANEL = 'parley.panel'

export function ChatPage() {
  const chat = currentChat()
  const turns = chat.turns.value
  // Whoever asks first may have made something meanwhile. What is known stays until then: sources are called by it.
  const choices = useKept(useLoaded(`choices ${key.value} ${chat.ended.value > 0}`, loadChoices))
  const [settled, setSettled] = useState(false)
  const [asking, setAsking] = useState(false)
  const [panel, setPanel] = useState(() =>
    matchMedia(WIDE).matches ? localStorage.getItem(PANEL) !== 'closed' : false,
  )
  const [picked, setPicked] = useState<Turn>()
  const stage = useStage(chat)
  useTitle(turns[0]?.question ?? '')

  const { data } = choices

  // Where nobody has chosen, what there is takes the place of what there is not.
  useEffect(() => {
    if (!data) return
    if (!chosen) settings.value = possible(settings.peek(), data)
    setSettled(true)
  }, [data])

  // By which fields sources are called is the assistant's to say, or seen in the schema.
  const own = chat.own.value
  const { assistant, collection } = own?.settings ?? settings.value
  useEffect(() => {
    const told = data?.assistants?.find(({ name }) => name === assistant)
    const fields = data?.collections?.find(({ name }) => name === collection)?.fields
    const title = told ? told.title_field : fields?.find(({ name }) => name === 'heading')?.name
    chat.setFront({ title_field: title, url_field: told?.url_field })
  }, [data, assistant, collection, chat])

  const last = turns.at(-1)
  const inspected = picked && turns.includes(picked) ? picked : last
  const show = (open: boolean) => {
    setPanel(open)
    if (matchMedia(WIDE).matches) localStorage.setItem(PANEL, open ? 'open' : 'closed')
  }
  const inspect = (turn: Turn) => {
    if (panel && inspected === turn) return show(false)
    setPicked(turn === last ? undefined : turn)
    show(true)
  }
  const started = turns.length > 0
  const panelShown = panel && started
  return (
    <div class={panelShown ? 'chat with-panel' : 'chat'}>
      <div class="chat-main" ref={stage.holder}>
        <header class="chat-head ends">
          <h1 class={started ? 'chat-title cut' : 'hidden'} tabIndex={-1} dir="auto">
            {turns[0]?.question ?? 'Ask your documents'}
          </h1>
          <span class="grow" />
          <Button label="Settings" kind="quiet" icon="settings" onClick={() => setAsking(true)} />
        </header>
        <div class="chat-scroll" ref={stage.scroller}>
          <div class="chat-column" ref={stage.turns}>
            {!started && (
              <Welcome chat={chat} choices={choices} settled={settled} open={() => setAsking(true)} />
            )}
            {started && <h2 class="hidden">Conversation</h2>}
            {turns.map((turn) => (
              <TurnItem
                key={turnKey(turn)}
                turn={turn}
                view={stage.view}
                chat={chat}
                inspected={panelShown && turn === inspected}
                inspect={() => inspect(turn)}
              />
            ))}
          </div>
        </div>
        <div class="chat-foot">
          <button
            type="button"
            class="latest"
            aria-label={WORDS.latest}
            title={WORDS.latest}
            ref={stage.latest}
            hidden
            onClick={stage.toEnd}
          >
            <Icon name="down" />
          </button>
          <Ask chat={chat} started={started} />
          <p class="note soft">
            {started && own && (
              <>
                Asking{' '}
                <button type="button" class="link" onClick={() => setAsking(true)}>
                  {inSentence(own.settings)}
                </button>
                .{' '}
              </>
            )}
            AI can make mistakes. Check important information.
          </p>
        </div>
        <div ref={stage.live} class="hidden" role="log" aria-live="polite" aria-label="Answers" />
      </div>
      {panelShown && inspected && <Inspector chat={chat} turn={inspected} close={() => show(false)} />}
      {asking && (
        <SettingsDialog
          chat={chat}
          choices={data ?? {}}
          close={() => {
            setAsking(false)
            if (!chat.busy.peek() && chat.lost.peek() !== undefined) go(NEW)
          }}
        />
      )}
    </div>
  )
}

/** The widget's view of turns among the elements of the page, once these are there. */
function useStage(chat: Chat) {
  const holder = useRef<HTMLDivElement>(null)
  const scroller = useRef<HTMLDivElement>(null)
  const turns = useRef<HTMLDivElement>(null)
  const latest = useRef<HTMLButtonElement>(null)
  const live = useRef<HTMLDivElement>(null)
  const [{ view, card }, setMade] = useState<{ view?: TurnsView; card?: Card }>({})
  useLayoutEffect(() => {
    const card = new Card(
      () => WORDS,
      () => holder.current!,
    )
    holder.current!.append(card.element)
    const stage = {
      scroller: scroller.current!,
      turns: turns.current!,
      latest: latest.current!,
      live: live.current!,
    }
    const view = new TurnsView(stage, {
      words: WORDS,
      cannotCopy: 'The browser did not let this page copy.',
      colour,
      session: () => chat.session,
      ask: (question, replaces) => {
        view.follow()
        chat.ask(question, replaces)
      },
      decide: (turn, isAllowed) => {
        view.follow()
        void chat.session.decide(turn, isAllowed)
      },
      cite: (opener, evidence, peeks) => card.serve(opener, () => linked(evidence()), peeks),
      rate: (turn, feedback) => chat.session.rate(turn, feedback),
    })
    view.markdown = MARKDOWN
    chat.view = view
    setMade({ view, card })
    return () => {
      chat.view = undefined
      view.close()
      card.element.remove()
    }
  }, [chat])
  const { length } = chat.turns.value
  // Whoever asks, or opens a conversation, is at its end.
  useEffect(() => {
    view?.follow()
    if (length > 0) return
    card?.close(false)
    live.current?.replaceChildren()
  }, [view, card, length])
  const toEnd = () => scroller.current?.scrollTo({ top: scroller.current.scrollHeight })
  return { holder, scroller, turns, latest, live, view, toEnd }
}

/** Documents without an address have the console's own page. */
const linked = ({ source, ...evidence }: Evidence): Evidence => ({
  ...evidence,
  source: source && {
    ...source,
    url: source.url ?? location.origin + pageOf(`${source.collection}/${source.documentId}`),
  },
})

// =============================================================================
// A turn of the chat: the widget's own view of it, and what the console adds below.

interface TurnProps {
  turn: Turn
  view: TurnsView | undefined
  chat: Chat
  /** whether the panel beside the chat is about this turn */
  inspected: boolean
  inspect: () => void
}

function TurnItem({ turn, view, chat, inspected, inspect }: TurnProps) {
  const holder = useRef<HTMLDivElement>(null)
  useEffect(() => view?.show(turn, holder.current!), [turn, view])
  const running = isRunning(turn)
  const { usage, timings } = chat.insight(turn).value
  const tokens = (usage?.input_tokens ?? 0) + (usage?.output_tokens ?? 0)
  const a = chat.addressOf(turn)
  return (
    <div class="turn-item">
      <div ref={holder} />
      {/* Below an answer that grows it would move all the time. The panel that it opens is there already. */}
      <div class={running && inspected ? 'turn-foot line apart waiting' : 'turn-foot line apart'}>
        <Button
          label="Why this answer?"
          kind="pill"
          icon="inspect"
          aria-pressed={inspected}
          onClick={inspect}
          title="The searches, the prompt and the times behind this answer"
        />
        {a && <Button label="Compare" kind="pill" icon="compare" href={to(['compare'], { a })} />}
        {usage && turn.state === 'done' && (
          <p class="turn-meta line aside">
            <span>Answered by {usage.model}</span>
            {timings?.finished !== undefined && <span>{duration(timings.finished)}</span>}
            {tokens > 0 && <span>{many(tokens, 'token')}</span>}
          </p>
        )}
      </div>
    </div>
  )
}

// =============================================================================
// The field for a question.

const draft = new Draft(location.origin, 'console')

/** The widget's field for a question. */
function Ask({ chat, started }: { chat: Chat; started: boolean }) {
  const holder = useRef<HTMLDivElement>(null)
  const [composer, setComposer] = useState<Composer>()
  useLayoutEffect(() => {
    const made = new Composer({
      words: { ...WORDS, send: 'Ask' },
      draft,
      label: 'Your question',
      id: 'question',
      placeholder: WORDS.placeholder,
      ask: (question) => chat.ask(question),
      stop: () => chat.stop(),
    })
    holder.current!.replaceChildren(made.element)
    made.fit()
    setComposer(made)
  }, [chat])
  useEffect(() => {
    if (composer) composer.field.placeholder = started ? WORDS.followup : WORDS.placeholder
  }, [composer, started])
  const busy = chat.busy.value
  useLayoutEffect(() => {
    if (!composer) return
    composer.busy = busy
    if (!busy) return
    return () => {
      // Whatever had the focus is gone with the first question.
      if (document.activeElement === document.body) composer.field.focus({ preventScroll: true })
    }
  }, [composer, busy])
  return <div ref={holder} />
}

// =============================================================================
// The chat before its first question: what can be asked, or what is missing for it.

interface WelcomeProps {
  chat: Chat
  choices: Loaded<Choices>
  settled: boolean
  open: () => void
}

const MOST = 6

function Welcome({ chat, choices, settled, open }: WelcomeProps) {
  const { data, error } = choices
  const lost = chat.lost.value
  if (lost !== undefined) {
    return (
      <Empty icon="conversations" title="This conversation cannot be shown">
        <p role="alert">{lost}</p>
        <Button label="New conversation" kind="primary" href={NEW} />
      </Empty>
    )
  }
  if (error && !data) return <Problem error={error} retry={choices.reload} />
  // A conversation that the address names is on its way.
  if (chat.id !== undefined && chat.turns.value.length === 0) return null
  const { assistant, collection } = settings.value
  const missing = missingOf(data, assistant)
  if (missing !== undefined) {
    return (
      <Empty icon="spark" title="Welcome to Parley">
        <p>{missing}</p>
        <div class="line">
          <Button label="Get started" kind="primary" href={to(['start'])} />
          <Button label="Import files" icon="upload" href={to(['import'])} />
        </div>
      </Empty>
    )
  }
  const questions = questionsOf(data, assistant, collection)
  const where = assistant === '' ? `the collection ${collection}` : `the assistant ${assistant}`
  return (
    <section class="welcome" aria-labelledby="welcome-title">
      <img src="/icon.svg" alt="" width="48" height="48" />
      <h2 id="welcome-title">Ask your documents</h2>
      <p>Answers come with their sources, and you can ask on from there.</p>
      {settled && (
        <p class="welcome-where">
          You are asking{' '}
          <button type="button" class="link" onClick={open}>
            {where}
          </button>
          .
        </p>
      )}
      <ul class="first-questions">
        {questions.slice(0, MOST).map((question) => (
          <li key={question}>
            <button type="button" class="suggestion ends" onClick={() => chat.ask(question)}>
              <span>{question}</span>
              <Icon name="right" />
            </button>
          </li>
        ))}
      </ul>
      <p class="welcome-own line">
        <Icon name="upload" />
        <span>
          Your own content? Drop a folder anywhere on this page, <a href={to(['import'])}>choose files</a>, or{' '}
          <a href={to(['start'])}>name your website</a>.
        </span>
      </p>
    </section>
  )
}

function questionsOf(data: Choices | undefined, assistant: string, collection: string): string[] {
  const own = data?.assistants?.find(({ name }) => name === assistant)?.questions
  const { questions } = data?.collections?.find(({ name }) => name === collection)?.metadata ?? {}
  if (assistant !== '') return own ?? []
  return Array.isArray(questions) ? questions.map(String) : []
}

/** What there has to be before anything can be asked; undefined where nothing is missing, or the key may not say. */
function missingOf(data: Choices | undefined, assistant: string): string | undefined {
  if (assistant !== '') return undefined
  if (data?.collections?.length === 0)
    return 'There is nothing to ask yet. Name your website, or drop a folder of documents on this page, and ask in a minute.'
  if (data?.models?.length === 0) return 'Your content is here. Now choose who answers from it.'
  return undefined
}
