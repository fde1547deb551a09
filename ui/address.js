/**
 * What the address has after its `#`, or a part of it: whatever somebody has written there. What is no encoding of text
 * stands for itself.
 * @param {string} text
 */
export function decoded(text) {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
