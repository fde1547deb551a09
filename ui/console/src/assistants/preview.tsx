/** The widget as a page shows it, asking with the console's own key. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { Refusal } from '../api'
import { key } from '../key'
import { Problem } from '../parts/states'

const SCRIPT = '/widget/parley-chat.js'

export function Preview({ assistant }: { assistant: string }) {
  const holder = useRef<HTMLDivElement>(null)
  const [failed, setFailed] = useState(false)
  useEffect(() => {
    const chat = document.createElement('parley-chat')
    chat.className = 'preview'
    chat.setAttribute('assistant', assistant)
    chat.setAttribute('key', key.peek())
    chat.setAttribute('theme', 'auto')
    import(SCRIPT).then(
      () => holder.current?.replaceChildren(chat),
      () => setFailed(true),
    )
    return () => chat.remove()
  }, [assistant])
  return (
    <section aria-labelledby="preview-title">
      <h2 id="preview-title" class="field-label">
        Preview
      </h2>
      {failed && <Problem error={new Refusal(0, 'The widget could not be loaded. Reload the page.')} />}
      <div ref={holder} />
    </section>
  )
}
