/** What the tests use of React, which brings no types of its own. */
declare module 'react' {
  export type ComponentType = () => null
  export const Suspense: unique symbol
  export function createElement(type: unknown, props?: object | null, ...children: unknown[]): object
}
declare module 'react-dom/client' {
  export function createRoot(container: Element): { render(node: object): void; unmount(): void }
}
