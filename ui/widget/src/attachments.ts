/** Texts, PDFs and pictures that a visitor attaches to the next question: by a button, by dropping them, or by pasting them. */
import { h, iconButton } from './dom'
import type { Pdf } from './pdf'
import type { AttachedFile, FileLimits } from './wire'
import type { Words } from './words'

/** Characters of a file's name that the server takes. */
const LONGEST_NAME = 200
const KB = 1024
/** Pixels of a picture's longer side, as models take it, and how well it is kept. */
const PICTURE = { side: 1_568, quality: 0.8 }
/** Bytes of a PDF that are read. */
const LONGEST_PDF = 20 * KB * KB

export class Attachments {
  /** opens the browser's choice of files */
  readonly button: HTMLButtonElement
  /** what is attached, and the limits */
  readonly element: HTMLElement
  readonly #words: Words
  readonly #say: (text: string) => void
  readonly #pdf: () => Promise<Pdf>
  readonly #input: HTMLInputElement
  readonly #list: HTMLElement
  readonly #problem = h('p', { class: 'attach-problem', dir: 'auto', role: 'alert', hidden: true })
  readonly #hint = h('p', { class: 'attach-limits' })
  #limits: FileLimits | undefined
  #files: AttachedFile[] = []
  /** settles when what was added has been read */
  #reading: Promise<void> = Promise.resolve()

  /**
   * @param say says something to whoever listens
   * @param pdf loads what reads PDFs
   */
  constructor(words: Words, say: (text: string) => void, pdf: () => Promise<Pdf>) {
    this.#words = words
    this.#say = say
    this.#pdf = pdf
    this.#input = h('input', {
      type: 'file',
      multiple: true,
      hidden: true,
      'aria-label': words.attach,
      onchange: () => {
        this.add([...(this.#input.files ?? [])])
        this.#input.value = ''
      },
    })
    this.button = iconButton('clip', words.attach, () => this.#input.click(), {
      class: 'tool attach',
      part: 'attach',
      hidden: true,
    })
    this.#list = h('ul', { class: 'files', 'aria-label': words.attached })
    const inside = [this.#list, this.#problem, this.#hint, this.#input]
    this.element = h('div', { class: 'attachments', part: 'attachments', hidden: true }, ...inside)
  }

  /** what the assistant takes; undefined: no files */
  set limits(limits: FileLimits | undefined) {
    this.#limits = limits
    this.button.hidden = !limits
    if (!limits) this.#files = []
    else {
      const size = limits.bytes < KB ? (limits.bytes / KB).toFixed(1) : String(Math.floor(limits.bytes / KB))
      const { fileLimits, pictureLimits } = this.#words
      this.#hint.textContent = (limits.pictures ? pictureLimits : fileLimits)
        .replace('{files}', String(limits.files))
        .replace('{size}', size)
      this.button.title = `${this.#words.attach}. ${this.#hint.textContent}`
      this.button.setAttribute('aria-description', this.#hint.textContent)
    }
    this.#show()
  }

  /** Has files that are dropped on an element, or pasted into a field, be attached. */
  listen(area: HTMLElement, field: HTMLElement): void {
    const brings = (transfer: DataTransfer | null): transfer is DataTransfer =>
      this.#limits !== undefined && (transfer?.types.includes('Files') ?? false)
    area.addEventListener('dragover', (event) => {
      if (!brings(event.dataTransfer)) return
      event.preventDefault()
      area.classList.add('dropping')
    })
    area.addEventListener('dragleave', ({ relatedTarget }) => {
      if (!area.contains(relatedTarget as Node | null)) area.classList.remove('dropping')
    })
    area.addEventListener('drop', (event) => {
      area.classList.remove('dropping')
      if (!brings(event.dataTransfer)) return
      event.preventDefault()
      this.add([...event.dataTransfer.files])
      field.focus()
    })
    field.addEventListener('paste', (event) => {
      const { clipboardData: data } = event
      // Office programs put a picture of copied text beside the text. The visitor means the text.
      if (!brings(data) || data.types.includes('text/plain')) return
      event.preventDefault()
      this.add([...data.files])
    })
  }

  /** Reads files, one after another, and attaches those that the assistant takes. */
  add(files: readonly File[]): void {
    this.#reading = this.#reading.then(() => this.#read(files))
  }

  /** What is attached, once it is read. Nothing is attached afterwards. */
  async take(): Promise<AttachedFile[]> {
    await this.#reading
    const files = this.#files
    this.#files = []
    this.#problem.hidden = true
    this.#show()
    return files
  }

  async #read(files: readonly File[]): Promise<void> {
    const refused: string[] = []
    const cut: string[] = []
    for (const file of files) {
      const name = file.name.slice(0, LONGEST_NAME)
      const picture = /^image\//.test(file.type) ? await this.#pictured(file, name) : undefined
      if (picture) {
        this.#files.push(picture)
        continue
      }
      const isPdf = file.type === 'application/pdf' || /\.pdf$/i.test(name)
      const text = await (isPdf ? this.#printed(file) : this.#textOf(file))
      // Nobody can make a PDF shorter, as they can a text.
      const fitting = text !== undefined && isPdf ? this.#beginning(name, text) : text
      if (fitting && this.#fits({ name, text: fitting })) {
        this.#files.push({ name, text: fitting })
        if (fitting !== text) cut.push(name)
      } else refused.push(name)
    }
    const { notAttached, cutShort } = this.#words
    const told = (words: string, names: string[]) =>
      names.length > 0 ? [words.replace('{name}', () => names.join(', '))] : []
    const problems = [...told(notAttached, refused), ...told(cutShort, cut)]
    this.#problem.hidden = problems.length === 0
    this.#problem.textContent = problems.join(' ')
    this.#show()
    if (refused.length < files.length) this.#say(`${this.#words.attached}: ${this.#names()}`)
  }

  /** undefined if it is too long, or no text in UTF-8 */
  async #textOf(file: File): Promise<string | undefined> {
    if (file.size > (this.#limits?.bytes ?? 0)) return undefined
    try {
      const text = new TextDecoder('utf-8', { fatal: true }).decode(await file.arrayBuffer())
      return text.includes('\0') ? undefined : text
    } catch {
      return undefined
    }
  }

  /** A picture as a model takes it; undefined if this one takes none, if there is no room for it, or if it is no picture. */
  async #pictured(file: File, name: string): Promise<AttachedFile | undefined> {
    const { pictures = 0, files = 0 } = this.#limits ?? {}
    if (pictures === 0 || this.#files.length >= files) return undefined
    try {
      const bitmap = await createImageBitmap(file)
      const scale = Math.min(1, PICTURE.side / Math.max(bitmap.width, bitmap.height))
      const canvas = h('canvas', {
        width: Math.ceil(bitmap.width * scale),
        height: Math.ceil(bitmap.height * scale),
      })
      canvas.getContext('2d')?.drawImage(bitmap, 0, 0, canvas.width, canvas.height)
      bitmap.close()
      const type = 'image/jpeg'
      const data = canvas.toDataURL(type, PICTURE.quality).split(',')[1] ?? ''
      const taken = this.#files.reduce((sum, each) => sum + (each.data?.length ?? 0), 0)
      return taken + data.length <= pictures ? { name, type, data } : undefined
    } catch {
      return undefined
    }
  }

  /** The text of a PDF; undefined if it has none that can be read. */
  async #printed(file: File): Promise<string | undefined> {
    if (file.size > LONGEST_PDF) return undefined
    try {
      const { textOf } = await this.#pdf()
      return await textOf(new Uint8Array(await file.arrayBuffer()), file.name)
    } catch {
      return undefined
    }
  }

  /** As much of a text as there is room for, to the end of a word. */
  #beginning(name: string, text: string): string {
    if (this.#fits({ name, text })) return text
    const encoder = new TextEncoder()
    const taken = this.#files.reduce(
      (sum, each) => sum + encoder.encode(each.name + (each.text ?? '')).length,
      0,
    )
    const room = (this.#limits?.bytes ?? 0) - taken - encoder.encode(name).length
    const { read } = encoder.encodeInto(text, new Uint8Array(Math.max(0, room)))
    return text.slice(0, read).replace(/\S+$/, '').trim()
  }

  #fits(file: AttachedFile): boolean {
    const { files = 0, bytes = 0 } = this.#limits ?? {}
    const all = [...this.#files, file]
    const encoder = new TextEncoder()
    const size = all.reduce((sum, { name, text = '' }) => sum + encoder.encode(name + text).length, 0)
    return all.length <= files && size <= bytes
  }

  #names(): string {
    return this.#files.map(({ name }) => name).join(', ')
  }

  #show(): void {
    this.element.hidden = this.#files.length === 0 && this.#problem.hidden
    this.#list.hidden = this.#files.length === 0
    this.#list.replaceChildren(
      ...this.#files.map((file, at) => {
        const { detach } = this.#words
        const remove = iconButton('close', `${detach}: ${file.name}`, () => this.#remove(at), {
          class: 'tool detach',
        })
        return h('li', { class: 'file' }, h('span', { class: 'file-name', dir: 'auto' }, file.name), remove)
      }),
    )
  }

  #remove(at: number): void {
    this.#files.splice(at, 1)
    this.#problem.hidden = true
    this.#show()
    const buttons = this.#list.querySelectorAll('button')
    ;(buttons[Math.min(at, buttons.length - 1)] ?? this.button).focus()
  }
}
