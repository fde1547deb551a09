/** A bundler of Workers gives a WebAssembly file as a compiled module. */
declare module '*.wasm' {
  const module: WebAssembly.Module
  export default module
}
