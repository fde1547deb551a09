declare module 'stopword' {
  export const deu: string[]
  export const fra: string[]
  export const ita: string[]
  export const nld: string[]
  export const por: string[]
  export const spa: string[]
}
