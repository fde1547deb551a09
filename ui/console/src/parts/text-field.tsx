/** A labelled line of text in a form. */
interface TextFieldProps {
  id: string
  label: string
  value: string
  change: (value: string) => void
  type?: 'text' | 'password'
  required?: boolean
  list?: string
  placeholder?: string
  /** the id of the text that explains it */
  described?: string
}

export function TextField({ id, label, change, described, type = 'text', ...input }: TextFieldProps) {
  return (
    <div>
      <label class="field-label" for={id}>
        {label}
      </label>
      <input
        id={id}
        class="input"
        spellcheck={false}
        aria-describedby={described}
        {...({ ...input, type } as object)}
        // A password may begin or end with a space.
        onInput={({ currentTarget: { value } }) => change(type === 'password' ? value : value.trim())}
      />
    </div>
  )
}
