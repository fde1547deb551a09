/**
 * A secret as it may be shown: its first five characters, then an asterisk for each further one. A secret of
 * five characters or fewer shows none of them, as eleven asterisks (Typesense's rule, contract 1.2).
 */
export const maskSecret = (secret: string): string =>
  secret.length > 5 ? secret.slice(0, 5) + '*'.repeat(secret.length - 5) : '*'.repeat(11)

/**
 * A text with its secrets masked, also where they stand in JSON: a server that echoes a request echoes its credentials.
 * @param secrets none of them empty. The longest go first: one that begins another would leave the rest of that one visible
 */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  const inJson = (value: string) => JSON.stringify(value).slice(1, -1)
  return [...secrets]
    .sort((a, b) => b.length - a.length)
    .reduce((shown, secret) => {
      const mask = maskSecret(secret)
      return shown.replaceAll(inJson(secret), inJson(mask)).replaceAll(secret, mask)
    }, text)
}
