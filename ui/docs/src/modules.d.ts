/** What VitePress builds besides JavaScript. */
declare module '*.css'
declare module '*.vue' {
  const component: import('vue').Component
  export default component
}
