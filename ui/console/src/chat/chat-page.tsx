/** The chat: a conversation, and beside it why its answers are what they are. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Card } from '../../../widget/src/card'
import type { Evidence } from '../../../widget/src/evidence'
import { grammarOf, lex, render } from '../../../widget/src/markdown'
import type { Turn } from '../../../widget/src/session'
import type { TurnHost } from '../../../widget/src/turn-view'
import { go, NEW, pageOf } from '../address'
import { key, useLoaded } from '../api'
import { Button, copied, SHOWN_MS } from '../parts/button'
import { Icon } from '../parts/icon'
import { useTitle } from '../parts/page'
import { colour } from '../parts/prose'
import { type Chat, chat as currentChat, turnKey } from './chat'
import { loadChoices, possible } from './choices'
import { Composer } from './composer'
import { Inspector } from './inspector'
import { chosen, inSentence, settings } from './settings'
import { SettingsDialog } from './settings-form'
import { TurnItem } from './turn'
import { Welcome } from './welcome'
import { WORDS } from './words'

const MARKDOWN = { lex, render, grammarOf }
const words = () => WORDS
const WIDE = '(min-width: 1180px)'
/** How near to its end, in pixels, a conversation is followed. */
const NEAR = 80
/** From where, in pixels, a button leads back to the end. */
const FAR = 240
const PANEL = 'parley.panel'

export function ChatPage() {
  const chat = currentChat()
  const turns = chat.turns.value
  const choices = useLoaded(`choices ${key.value}`, loadChoices)
  const { reload } = choices
  const answered = chat.ended.value > 0
  const wasAnswered = useRef(answered)
  // Whoever asks first may have made something meanwhile. What is known stays until then: sources are called by it.
  useEffect(() => {
    if (answered && !wasAnswered.current) reload()
    wasAnswered.current = answered
  }, [answered, reload])
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
    if (!chosen) {
      const now = settings.peek()
      const { collection, model } = possible(now, data)
      if (collection !== now.collection || model !== now.model) {
        settings.value = { ...now, collection, model }
      }
    }
    setSettled(true)
  }, [data])

  // By which fields sources are called is the assistant's to say, or seen in the schema.
  const own = chat.own.value
  const { assistant, collection } = own?.settings ?? settings.value
  useEffect(() => {
    const told = data?.assistants?.find(({ name }) => name === assistant)
    const fields = data?.collections?.find(({ name }) => name === collection)?.fields
    const title = told ? told.title_field : fields?.find(({ name }) => name === 'heading')?.name
    chat.setFront({
      ...(title !== undefined && { title_field: title }),
      ...(told?.url_field !== undefined && { url_field: told.url_field }),
    })
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
        <header class="chat-head">
          <h1 class={started ? 'chat-title cut' : 'hidden'} tabIndex={-1} dir="auto">
            {turns[0]?.question ?? 'Ask your documents'}
          </h1>
          <span class="grow" />
          <Button label="Settings" kind="quiet" icon="settings" onClick={() => setAsking(true)} />
        </header>
        <div class="chat-scroll" ref={stage.scroller} onScroll={stage.scrolled}>
          <div class="chat-column">
            {!started && (
              <Welcome chat={chat} choices={choices} settled={settled} open={() => setAsking(true)} />
            )}
            {started && <h2 class="hidden">Conversation</h2>}
            {turns.map((turn) => (
              <TurnItem
                key={turnKey(turn)}
                turn={turn}
                host={stage.host}
                chat={chat}
                inspected={panelShown && turn === inspected}
                inspect={() => inspect(turn)}
              />
            ))}
          </div>
        </div>
        <div class="chat-foot">
          {stage.away && (
            <button
              type="button"
              class="latest"
              aria-label={WORDS.latest}
              title={WORDS.latest}
              onClick={stage.toEnd}
            >
              <Icon name="down" />
            </button>
          )}
          <Composer chat={chat} started={started} />
          <p class="note">
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

/** What the widget's views ask of the page around them. */
function useStage(chat: Chat) {
  const holder = useRef<HTMLDivElement>(null)
  const scroller = useRef<HTMLDivElement>(null)
  const live = useRef<HTMLDivElement>(null)
  const follows = useRef(true)
  const [card] = useState(() => new Card(words, () => holder.current!))

  useEffect(() => {
    holder.current?.append(card.element)
    return () => card.element.remove()
  }, [card])

  const host = useMemo<TurnHost>(() => {
    const say = (text: string) => {
      const said = document.createElement('p')
      said.textContent = text
      live.current?.append(said)
      while ((live.current?.childElementCount ?? 0) > 20) live.current?.firstElementChild?.remove()
    }
    return {
      words: WORDS,
      markdown: () => MARKDOWN,
      colour,
      ask: (question, replaces) => {
        follows.current = true
        chat.ask(question, replaces)
      },
      cite: (opener, evidence, peeks) => card.serve(opener, () => linked(evidence()), peeks),
      copied: (text, button) => copy(text, button, say),
      say,
      rate: (turn, feedback) => chat.session.rate(turn, feedback),
      isLast: (turn) => chat.session.turns.at(-1) === turn,
      busy: () => chat.session.busy,
      show: (turn, version) => {
        chat.session.show(turn, version).catch(() => say(WORDS.offline))
      },
    }
  }, [chat, card])

  const [away, setAway] = useState(false)
  const { length } = chat.turns.value
  useEffect(() => {
    follows.current = true
    if (length === 0) {
      card.close(false)
      live.current?.replaceChildren()
    }
  }, [length, card])
  useEffect(() => {
    const element = scroller.current
    const column = element?.firstElementChild
    if (!element || !column) return
    // What is written makes the column higher, and its reader stays at its end.
    const observer = new ResizeObserver(() => {
      if (follows.current && chat.turns.peek().length > 0) element.scrollTop = element.scrollHeight
      setAway(leftOf(element) > FAR)
    })
    observer.observe(column)
    return () => observer.disconnect()
  }, [chat])
  const top = useRef(0)
  const scrolled = () => {
    const element = scroller.current
    if (!element) return
    // More may have been written since this scroll began: only who scrolls up leaves the end.
    const left = leftOf(element)
    setAway(left > FAR)
    if (left < NEAR) follows.current = true
    else if (element.scrollTop < top.current) follows.current = false
    top.current = element.scrollTop
  }
  const toEnd = () => {
    follows.current = true
    scroller.current?.scrollTo({ top: scroller.current.scrollHeight })
  }
  return { holder, scroller, live, host, scrolled, away, toEnd }
}

/** Documents without an address have the console's own page. */
const linked = ({ source, ...evidence }: Evidence): Evidence => ({
  ...evidence,
  source: source && {
    ...source,
    url: source.url ?? location.origin + pageOf(`${source.collection}/${source.documentId}`),
  },
})

/** pixels between what is seen and the end */
const leftOf = ({ scrollHeight, scrollTop, clientHeight }: HTMLElement): number =>
  scrollHeight - scrollTop - clientHeight

async function copy(text: string, button: HTMLButtonElement, say: (text: string) => void): Promise<void> {
  const done = await copied(text)
  say(done ? WORDS.copied : 'The browser did not let this page copy.')
  if (!done) return
  button.classList.add('copied')
  setTimeout(() => button.classList.remove('copied'), SHOWN_MS)
}
