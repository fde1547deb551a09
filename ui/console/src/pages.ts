/** The pages, by the first word of their path. Those with a title stand in the menu. */
import type { ComponentType } from 'preact'
import type { IconName } from './parts/button'

interface PageEntry {
  title?: string
  icon?: IconName
  /** absent: it is part of the first load */
  load?: () => Promise<{ default: ComponentType }>
}

export const PAGES: Record<string, PageEntry> = {
  chat: { title: 'Ask', icon: 'chat' },
  collections: { title: 'Collections', icon: 'collections', load: () => import('./collections/page') },
  rules: { title: 'Search rules', icon: 'settings', load: () => import('./rules/page') },
  sources: { title: 'Sources', icon: 'again', load: () => import('./sources/page') },
  conversations: {
    title: 'Conversations',
    icon: 'conversations',
    load: () => import('./conversations/page'),
  },
  sets: { title: 'Question sets', icon: 'sets', load: () => import('./sets/page') },
  assistants: { title: 'Assistants', icon: 'assistants', load: () => import('./assistants/page') },
  tools: { title: 'Tools', icon: 'tools', load: () => import('./tools/page') },
  models: { title: 'Models', icon: 'models', load: () => import('./models/page') },
  keys: { title: 'Keys', icon: 'keys', load: () => import('./keys/page') },
  webhooks: { title: 'Webhooks', icon: 'send', load: () => import('./webhooks/page') },
  usage: { title: 'Usage', icon: 'usage', load: () => import('./usage/page') },
  start: { title: 'Get started', icon: 'spark', load: () => import('./start/page') },
  import: { load: () => import('./import/page') },
  compare: { load: () => import('./compare/page') },
  fix: { load: () => import('./fix/page') },
}

/** Pages with addresses of their own below them. */
export const WITH_PAGES_BELOW = ['collections', 'conversations', 'sets', 'assistants', 'rules']
