/** Lets a benchmark import the Worker's pure modules: Node strips their types, and this finds their files. */
import module from 'node:module'

module.registerHooks({
  resolve(specifier, context, next) {
    try {
      return next(specifier, context)
    } catch (error) {
      if (!specifier.startsWith('.')) throw error
      return next(`${specifier}.ts`, context)
    }
  },
})
