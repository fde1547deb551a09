/** Kinds of rows that a backup has. This file imports nothing: scripts/openapi.mjs reads it as it is. */
export const BACKUP_KINDS = [
  'aliases',
  'assistants',
  'conversations',
  'erasures',
  'feedback',
  'keys',
  'models',
  'resources',
  'turns',
  'usage',
] as const

export type BackupKind = (typeof BACKUP_KINDS)[number]
