/** The properties of `<parley-chat>` that are its attributes. */
import { MODES, type Mode } from './frame'

export class AttributeElement extends HTMLElement {
  /** where Parley answers; absent: where this script came from */
  get server(): string {
    return (this.getAttribute('server') ?? new URL(import.meta.url).origin).replace(/\/+$/, '')
  }

  // React and Vue set a property where an element has one of an attribute's name, so none may be read-only.
  set server(url: string) {
    this.setAttribute('server', url)
  }

  get assistant(): string {
    return this.getAttribute('assistant') ?? 'default'
  }

  set assistant(name: string) {
    this.setAttribute('assistant', name)
  }

  get mode(): Mode {
    const mode = this.getAttribute('mode') ?? 'inline'
    return (MODES.includes(mode) ? mode : 'inline') as Mode
  }

  set mode(mode: Mode) {
    this.setAttribute('mode', mode)
  }

  /** whether the chat is shown, in the modes that open and close */
  get open(): boolean {
    return this.hasAttribute('open')
  }

  set open(open: boolean) {
    this.toggleAttribute('open', open)
  }

  show(): void {
    this.open = true
  }

  hide(): void {
    this.open = false
  }

  toggle(): void {
    this.open = !this.open
  }
}
