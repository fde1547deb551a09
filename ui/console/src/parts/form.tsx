/** Fields, forms and dialogs: what is typed is checked by the browser, and what is refused is said in the server's own words. */
import type { ComponentChildren, InputHTMLAttributes } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { Refusal, useAction } from '../api'
import { Button, Icon, Secret, Tool } from './button'
import { Act, Problem } from './page'

type More<P> = Omit<P, 'label' | 'value' | 'change' | 'options'>

/**
 * What is typed into a form, by name.
 * @param changed what a change makes of it, if it does more than replace parts
 * @returns the draft, what changes parts of it, and a labelled field for one of its texts, choices or yes and no
 */
export function useDraft<T extends object>(begin: T | (() => T), changed: Change<T> = merged) {
  const [draft, setDraft] = useState(begin)
  const set = (part: Partial<T>) => setDraft((before) => changed(before, part))
  const field = (name: keyof T, label: string) => ({
    label,
    value: String(draft[name]),
    change: (value: string) => set({ [name]: value } as Partial<T>),
  })
  return {
    draft,
    set,
    text: (name: TextsOf<T>, label: string, more: More<TextFieldProps> & Options = {}) => (
      <TextField key={name} {...more} {...field(name, label)} />
    ),
    choice: (name: TextsOf<T>, label: string, options: Choices, more: More<SelectFieldProps> = {}) => (
      <SelectField {...more} {...field(name, label)} options={options} />
    ),
    check: (name: ChecksOf<T>, label: string) => (
      <CheckField
        label={label}
        checked={draft[name] === true}
        change={(checked) => set({ [name]: checked } as Partial<T>)}
      />
    ),
  }
}

const PAUSE_MS = 250

/**
 * What is typed into a field whose text stands in the address, where "Back" and links change it, too.
 * @param take what becomes of it, a moment after
 */
export function useTyped(value: string, take: (text: string) => void) {
  const [text, setText] = useState(value)
  useEffect(() => setText((typed) => (typed.trim() === value ? typed : value)), [value])
  // biome-ignore lint/correctness/useExhaustiveDependencies: only typing begins the pause
  useEffect(() => {
    if (text === value) return
    const timer = setTimeout(() => take(text), PAUSE_MS)
    return () => clearTimeout(timer)
  }, [text])
  return [text, setText] as const
}

export type Draft<T extends object> = ReturnType<typeof useDraft<T>>

type Change<T> = (before: T, part: Partial<T>) => T
const merged = <T,>(before: T, part: Partial<T>): T => ({ ...before, ...part })

/** The names of a draft's texts, and of what is yes or no. */
type TextsOf<T> = { [Name in keyof T]: T[Name] extends string ? Name : never }[keyof T]
type ChecksOf<T> = { [Name in keyof T]-?: T[Name] extends boolean | undefined ? Name : never }[keyof T]

interface FieldProps {
  label: string
  value: string
  change: (value: string) => void
  /** what is said below it */
  hint?: ComponentChildren
  /** why the server refused what it holds: it is said in the place of the hint, and the field gets the focus */
  fault?: string | undefined
}

interface LabelledProps extends Pick<FieldProps, 'label' | 'hint' | 'fault'> {
  id?: string | undefined
  children: (attributes: {
    id: string
    'aria-describedby': string | undefined
    'aria-invalid': boolean
  }) => ComponentChildren
}

/** A field with its label, and what is said below it. */
function Labelled({ id: given, label, hint, fault, children }: LabelledProps) {
  const own = useId()
  const id = given ?? own
  const said = fault ?? hint
  useEffect(() => {
    if (fault !== undefined) document.getElementById(id)?.focus()
  }, [fault, id])
  return (
    <div>
      <label class="field-label" for={id}>
        {label}
      </label>
      {children({
        id,
        'aria-describedby': said ? `${id}-hint` : undefined,
        'aria-invalid': fault !== undefined,
      })}
      {said && (
        <p class={fault === undefined ? 'hint' : 'hint bad'} id={`${id}-hint`}>
          {said}
        </p>
      )}
    </div>
  )
}

type InputProps = 'pattern' | 'title' | 'required' | 'placeholder' | 'min' | 'max' | 'step' | 'disabled'

interface Options {
  /** what may be chosen, besides anything else */
  options?: readonly string[] | undefined
}

interface TextFieldProps extends FieldProps, Options, Pick<InputHTMLAttributes, InputProps> {
  type?: 'text' | 'password' | 'number' | 'url'
  /** lines of a text of several; absent: one line */
  rows?: number
  /** whether it is code */
  code?: boolean
  onBlur?: () => void
}

/** A labelled field for a text. */
export const TextField = ({ label, change, hint, fault, type, options, code, ...input }: TextFieldProps) => (
  <Labelled label={label} hint={hint} fault={fault}>
    {(labelled) => {
      const list = options && `${labelled.id}-options`
      const look = { class: code ? 'input code' : 'input', spellcheck: false, list }
      const attributes = { ...input, ...labelled, ...look }
      return (
        <>
          {input.rows ? (
            <textarea {...attributes} onInput={({ currentTarget: { value } }) => change(value)} />
          ) : (
            <input
              {...({ ...attributes, type } as object)}
              onInput={({ currentTarget: { value } }) => change(value)}
              // What somebody pasted may end with a space; a password may, too.
              onChange={({ currentTarget: { value } }) => type !== 'password' && change(value.trim())}
            />
          )}
          {options && (
            <datalist id={list}>
              {options.map((each) => (
                <option key={each} value={each} />
              ))}
            </datalist>
          )}
        </>
      )
    }}
  </Labelled>
)

interface SearchBoxProps {
  label: string
  value: string
  change: (value: string) => void
  /** characters that it takes */
  most?: number
}

/** What is looked for. */
export const SearchBox = ({ label, value, change, most }: SearchBoxProps) => (
  <label class="search-box line">
    <span class="hidden">{label}</span>
    <Icon name="search" />
    <input
      type="search"
      dir="auto"
      placeholder={label}
      maxLength={most}
      value={value}
      onInput={(event) => change(event.currentTarget.value)}
    />
  </label>
)

/** What is sent, and what is shown of it. */
type Choices = readonly (readonly [string, string])[]

interface SelectFieldProps extends FieldProps {
  id?: string
  options: Choices
  required?: boolean
  /** whether its label is for screen readers alone */
  bare?: boolean
  small?: boolean
}

/** A labelled choice. */
export function SelectField({ label, change, hint, fault, id, options, ...looks }: SelectFieldProps) {
  const { bare, small, ...more } = looks
  const select = (attributes: object) => (
    <select
      {...more}
      {...attributes}
      class={small ? 'input small' : 'input'}
      onChange={(event) => change(event.currentTarget.value)}
    >
      {options.map(([of, shown]) => (
        <option key={of} value={of}>
          {shown}
        </option>
      ))}
    </select>
  )
  if (bare) return select({ 'aria-label': label })
  return (
    <Labelled id={id} label={label} hint={hint} fault={fault}>
      {select}
    </Labelled>
  )
}

/** What may be chosen, where it is shown as it is sent. */
export const optionsOf = (names: readonly string[]) => names.map((name) => [name, name] as const)

interface CheckFieldProps {
  label: string
  checked: boolean
  change: (checked: boolean) => void
  /** whether its label is for screen readers alone */
  bare?: boolean
}

export const CheckField = ({ label, checked, change, bare }: CheckFieldProps) => (
  <label class={bare ? 'pick' : 'check line'}>
    <input type="checkbox" checked={checked} onChange={(event) => change(event.currentTarget.checked)} />
    {bare ? <span class="hidden">{label}</span> : label}
  </label>
)

interface CheckListProps<Name extends string> {
  label: string
  /** the names of what may be chosen, and what is shown of each */
  options: readonly (readonly [Name, string])[]
  chosen: readonly Name[]
  change: (chosen: Name[]) => void
  hint?: ComponentChildren
}

/** Any of several things, each with a box to check. */
export const CheckList = <Name extends string>({ label, hint, ...of }: CheckListProps<Name>) => (
  <fieldset class="choices">
    <legend class="field-label">{label}</legend>
    {hint && <p class="hint">{hint}</p>}
    {of.options.map(([name, shown]) => (
      <CheckField
        key={name}
        label={shown}
        checked={of.chosen.includes(name)}
        change={(checked) => {
          const others = of.chosen.filter((each) => each !== name)
          of.change(checked ? [...others, name] : others)
        }}
      />
    ))}
  </fieldset>
)

interface FormProps {
  /** what the button says, and what while it runs */
  action?: string
  busy?: string
  disabled?: boolean
  /** what it throws is shown, and the form stays */
  save: () => Promise<unknown>
  /** takes a file that is dropped on it */
  drop?: (file: File | undefined) => void
  /** absent: it is that of a dialog */
  class?: string
  /** what stands beside the button */
  beside?: ComponentChildren
  children: ComponentChildren
}

/** A form with its button. */
export function Form({ action = 'Save', busy: running = action, class: own, ...form }: FormProps) {
  const { disabled = false, save, drop, beside, children } = form
  const { busy, error, start } = useAction((_: Event) => save())
  return (
    <form
      class={own ?? 'dialog-body form'}
      autocomplete="off"
      onSubmit={start}
      onDragOver={(event) => drop && event.preventDefault()}
      onDrop={(event) => {
        if (!drop) return
        event.preventDefault()
        drop(event.dataTransfer?.files[0])
      }}
    >
      {children}
      {error && <Problem error={error} />}
      <div class={own === undefined ? 'dialog-foot line' : 'line'}>
        <Button label={busy ? running : action} kind="primary" type="submit" disabled={busy || disabled} />
        {beside}
      </div>
    </form>
  )
}

interface FormDialogProps extends Omit<FormProps, 'class' | 'beside'> {
  title: string
  wide?: boolean
  /** called once what was typed is saved, too */
  close: () => void
}

/** A form in a dialog of its own. */
export const FormDialog = ({ title, wide = false, close, save, ...form }: FormDialogProps) => (
  <Dialog title={title} close={close} class={wide ? 'wide' : ''}>
    <Form {...form} save={() => save().then(close)} />
  </Dialog>
)

type Json = Record<string, unknown>

interface JsonDialogProps {
  title: string
  value: unknown
  hint?: ComponentChildren
  /** takes what was typed. What it throws is shown, and the dialog stays */
  save: (value: Json) => Promise<unknown>
  close: () => void
}

/** Something as JSON, to be changed as the API has it. */
export function JsonDialog({ value, hint, save, ...dialog }: JsonDialogProps) {
  const [text, setText] = useState(() => JSON.stringify(value, null, 2))
  return (
    <FormDialog {...dialog} wide save={async () => save(objectIn(text))}>
      <TextField label="JSON" value={text} rows={16} code required hint={hint} change={setText} />
    </FormDialog>
  )
}

/** @throws Refusal for what is no object of JSON */
export function objectIn(text: string): Json {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new Refusal(0, `This is not JSON: ${(error as Error).message}.`)
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Json
  throw new Refusal(0, 'This is not a JSON object: it begins with { and ends with }.')
}

/** The lines of a text that say something. */
export const linesIn = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)

/** What was told: texts, lists and objects that are empty are left out. */
export const given = (told: Json): Json =>
  Object.fromEntries(Object.entries(told).filter(([, value]) => !isNothing(value)))

const isNothing = (value: unknown): boolean =>
  value === undefined || value === '' || (typeof value === 'object' && JSON.stringify(value).length === 2)

/** The number that a text is; undefined for an empty one. */
export const numberIn = (text: string): number | undefined => (text === '' ? undefined : Number(text))

/** What a text names, with spaces or commas between. */
export const namesIn = (text: string): string[] => text.split(/[\s,]+/).filter(Boolean)

/** What makes a thing another one: what is new or different, and null for what is gone. */
export const changesOf = (before: Json, after: Json): Json => ({
  ...Object.fromEntries(Object.keys(before).flatMap((name) => (name in after ? [] : [[name, null]]))),
  ...Object.fromEntries(
    Object.entries(after).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name])),
  ),
})

// =============================================================================
// Dialogs of the browser's own kind: Escape closes them, and the focus stays inside and comes back.

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

interface SecretDialogProps extends Omit<DialogProps, 'children'> {
  text: string
  /** what the secret is */
  of: string
  /** who keeps it, or what it is for */
  says: string
  children?: ComponentChildren
}

/** A secret, which is shown once. */
export const SecretDialog = ({ title, text, of, says, close, children }: SecretDialogProps) => (
  <Dialog title={title} close={close}>
    <div class="dialog-body form">
      <p>Copy it now: it is not shown again. {says}</p>
      <Secret text={text} of={of} />
      {children}
      <div class="dialog-foot line">
        <Button label="Done" kind="primary" onClick={close} />
      </div>
    </div>
  </Dialog>
)

interface ConfirmProps {
  title: string
  children: ComponentChildren
  /** what the button says */
  action: string
  run: () => Promise<unknown>
  close: () => void
}

/** Asks before something is deleted, and stays open with the reason when that fails. */
export const Confirm = ({ title, children, action, run, close }: ConfirmProps) => (
  <Dialog title={title} close={close}>
    <div class="dialog-body pile">{children}</div>
    <div class="dialog-foot line">
      <Button label="Cancel" onClick={close} />
      <Act label={action} kind="danger" run={() => run().then(close)} />
    </div>
  </Dialog>
)
