/** What searches go by besides documents: synonyms, curations, presets, stop words, and other names of collections. */
import { place, to } from '../address'
import { mapped, Refusal, send, useRead } from '../api'
import { JsonDialog } from '../parts/form'
import { many } from '../parts/format'
import { ListPage } from '../parts/list'
import { NotFound, Tabs } from '../parts/page'

type Rule = Record<string, unknown>

interface Kind {
  title: string
  /** what one is called */
  one: string
  lead: string
  /** of the API; that of its page, where it is absent */
  path?: string
  /** of what one is called by; `name` */
  key?: 'id'
  /** what is told of one */
  about: (rule: never) => string
  example: Rule
}

const items = ({ items: all }: { items: unknown[] }) => many(all.length, 'rule')

const KINDS: Record<string, Kind> = {
  synonyms: {
    title: 'Synonyms',
    one: 'synonym set',
    lead: 'Words that mean the same. A collection uses the sets that its schema names in synonym_sets.',
    path: 'synonym_sets',
    about: items,
    example: { items: [{ id: 'coat', synonyms: ['coat', 'jacket', 'parka'] }] },
  },
  curations: {
    title: 'Curations',
    one: 'curation set',
    lead: 'Documents that stand first, or do not stand, for a query. A collection uses the sets that its schema names in curation_sets.',
    path: 'curation_sets',
    about: items,
    example: {
      items: [
        {
          id: 'returns',
          rule: { query: 'refund', match: 'contains' },
          includes: [{ id: 'returns', position: 1 }],
        },
      ],
    },
  },
  presets: {
    title: 'Presets',
    one: 'preset',
    lead: 'Parameters of a search under a name.',
    about: ({ value }: { value: object }) => Object.keys(value).join(', '),
    example: { value: { query_by: 'title,text' } },
  },
  stopwords: {
    title: 'Stop words',
    one: 'stop word set',
    lead: 'Words that a search leaves out.',
    key: 'id',
    about: ({ stopwords }: { stopwords: string[] }) => stopwords.join(', '),
    example: { stopwords: ['the', 'a'] },
  },
  aliases: {
    title: 'Aliases',
    one: 'alias',
    lead: 'Other names of collections. One can lead to a new collection at once, for everybody.',
    about: ({ collection_name: name }: { collection_name: string }) => `leads to ${name}`,
    example: { collection_name: 'docs' },
  },
}

export default function Rules() {
  const tab = place.value.rest[0] ?? 'synonyms'
  const kind = Object.hasOwn(KINDS, tab) ? KINDS[tab] : undefined
  return kind ? <Listed key={tab} tab={tab} kind={kind} /> : <NotFound />
}

function Listed({ tab, kind }: { tab: string; kind: Kind }) {
  const { title, one, lead, path = tab, key = 'name', about, example } = kind
  const list = useRead<Rule[] | Record<string, Rule[]>>(`/${path}`)
  const nameOf = (rule: Rule) => String(rule[key] ?? '')
  const pathTo = (name: string) => `/${path}/${encodeURIComponent(name)}`
  return (
    <ListPage
      title="Search rules"
      lead={lead}
      above={
        <Tabs
          label="Kinds of rules"
          current={tab}
          tabs={Object.entries(KINDS).map(([id, each]) => ({
            id,
            title: each.title,
            href: to(id === 'synonyms' ? ['rules'] : ['rules', id]),
          }))}
        />
      }
      list={mapped(list, (reply) => (Array.isArray(reply) ? reply : (reply[path] ?? [])))}
      empty={{ icon: 'settings', title: `No ${title.toLowerCase()} yet`, text: lead }}
      kind={one}
      begin={{ [key]: '', ...example }}
      item={(rule) => ({
        name: nameOf(rule),
        about: about(rule as never),
        path: pathTo(nameOf(rule)),
        says: 'Searches that name it go on without it, or are refused.',
        action: 'Delete',
      })}
      edit={(rule, close) => (
        <JsonDialog
          title={nameOf(rule) === '' ? `New ${one}` : `Edit ${nameOf(rule)}`}
          value={rule}
          save={async ({ [key]: name, ...body }) => {
            if (typeof name !== 'string' || name.trim() === '')
              throw new Refusal(0, `It has no ${key}. Give it one as "${key}".`)
            await send('PUT', pathTo(name), body)
            // Another name is another rule: the old one goes.
            if (nameOf(rule) !== '' && nameOf(rule) !== name) await send('DELETE', pathTo(nameOf(rule)))
          }}
          close={close}
        />
      )}
    />
  )
}
