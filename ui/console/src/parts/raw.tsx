/** A text as it is, which scrolls where it is long. */
export const Raw = ({ text, label }: { text: string; label: string }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached with the keyboard
  <section class="raw" aria-label={label} tabIndex={0}>
    <pre>{text}</pre>
  </section>
)
