/** The turns of a conversation in the frame of the widget, whose buttons fit its state. */
import type { Frame } from './frame'
import type { Turn } from './session'
import { TurnsView, type TurnsViewOptions } from './turns-view'

export interface ConversationViewOptions extends TurnsViewOptions {
  frame: Frame
  /** what the field says before the first question */
  placeholder: string
  /** fits the way to people to the conversation */
  standing(answered: boolean, declined: number): void
}

export class ConversationView extends TurnsView {
  readonly #own: ConversationViewOptions
  readonly #hide = new Map<Turn, () => void>()

  constructor(options: ConversationViewOptions) {
    super(options.frame, options)
    this.#own = options
  }

  /** A turn has changed; without one, there are others. */
  override changed(turn?: Turn): void {
    if (!turn) this.layOut()
    super.changed(turn)
  }

  /** Shows the end of a turn at once. */
  ended(): void {
    this.draw()
    this.layOut()
  }

  /** Has the elements of turns be those of the conversation, and the buttons fit its state. */
  layOut(): void {
    const { frame, words, placeholder, session, standing } = this.#own
    const { turns = [], busy = false, declined = 0 } = session() ?? {}
    for (const [turn, hide] of this.#hide) {
      if (turns.includes(turn)) continue
      hide()
      this.#hide.delete(turn)
    }
    for (const turn of turns) if (!this.#hide.has(turn)) this.#hide.set(turn, this.show(turn, frame.turns))
    this.updateAll()
    frame.welcome.hidden = turns.length > 0
    frame.newChat.hidden = turns.length === 0
    const answered = turns.some(({ state }) => state === 'done')
    frame.share.hidden = !answered
    standing(answered, declined)
    frame.composer.busy = busy
    frame.field.placeholder = turns.length > 0 ? words.followup : placeholder
    this.settle()
  }
}
