/** Dialogs of the browser's own kind: Escape closes them, and the focus stays inside and comes back. */
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { useAction } from '../api'
import { Button, Tool } from './button'
import { Problem } from './states'

interface DialogProps {
  title: string
  close: () => void
  children: ComponentChildren
  class?: string
}

export function Dialog({ title, close, children, class: className = '' }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const opener = document.activeElement
    element.current?.showModal()
    element.current
      ?.querySelector<HTMLElement>('form :is(input:not([type=radio]), select, textarea)')
      ?.focus()
    return () => {
      if (opener instanceof HTMLElement) opener.focus()
    }
  }, [])
  return (
    <dialog ref={element} class={`dialog ${className}`} aria-labelledby={id} onClose={close}>
      <div class="dialog-head ends">
        <h2 id={id}>{title}</h2>
        <Tool icon="close" label="Close" onClick={() => element.current?.close()} />
      </div>
      {children}
    </dialog>
  )
}

interface ConfirmProps {
  title: string
  children: ComponentChildren
  /** what the button says */
  action: string
  run: () => Promise<unknown>
  close: () => void
}

/** Asks before something is deleted, and stays open with the reason when that fails. */
export function Confirm({ title, children, action, run, close }: ConfirmProps) {
  const { busy, error, start } = useAction(async () => {
    await run()
    close()
  })
  return (
    <Dialog title={title} close={close}>
      <div class="dialog-body pile">{children}</div>
      {error && <Problem error={error} />}
      <div class="dialog-foot">
        <Button label="Cancel" onClick={close} />
        <Button label={action} kind="danger" disabled={busy} onClick={() => start()} />
      </div>
    </Dialog>
  )
}
