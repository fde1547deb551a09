/** Views of one thing, each at an address of its own. */
interface TabsProps {
  label: string
  current: string
  tabs: { id: string; title: string; href: string }[]
}

export const Tabs = ({ label, current, tabs }: TabsProps) => (
  <nav class="tabs" aria-label={label}>
    {tabs.map(({ id, title, href }) => (
      <a key={id} href={href} aria-current={id === current ? 'page' : undefined}>
        {title}
      </a>
    ))}
  </nav>
)
