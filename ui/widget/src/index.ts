/** The script of a page: it makes `<parley-chat>` an element. */
import { ParleyChat } from './element'

if (!customElements.get('parley-chat')) customElements.define('parley-chat', ParleyChat)

export { ParleyChat }
