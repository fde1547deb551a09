/** What the program uses of workerd's globals, in Node: a stream whose writes end when their bytes were read. */
Object.assign(globalThis, { IdentityTransformStream: TransformStream })
