/** A button that copies a text and shows that it has. */
import { useState } from 'preact/hooks'
import { Tool } from './button'

const SHOWN_MS = 1_600

export function Copy({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [state, setState] = useState<'ready' | 'copied' | 'failed'>('ready')
  const copy = async () => {
    const done = await navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    )
    setState(done ? 'copied' : 'failed')
    setTimeout(() => setState('ready'), SHOWN_MS)
  }
  const said = { ready: label, copied: 'Copied', failed: 'The browser did not let this page copy' }[state]
  return (
    <Tool
      icon={state === 'copied' ? 'check' : state === 'failed' ? 'warning' : 'copy'}
      label={said}
      onClick={copy}
    />
  )
}
