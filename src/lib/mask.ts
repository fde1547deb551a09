/**
 * A secret as it may be shown: its first five characters, then an asterisk for each further one. A secret of
 * five characters or fewer shows none of them, as eleven asterisks (Typesense's rule, contract 1.2).
 */
export const maskSecret = (secret: string): string =>
  secret.length > 5 ? secret.slice(0, 5) + '*'.repeat(secret.length - 5) : '*'.repeat(11)
