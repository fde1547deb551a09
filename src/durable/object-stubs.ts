/**
 * Hands out Durable Objects. Nothing else asks a namespace for one, so all of them live where the deployment says:
 * `JURISDICTION` keeps them inside a region by law, `REGION` asks for them near its users (docs/regions.md).
 */

/**
 * An object's id. It depends on the jurisdiction: with another one, the same name is another object without data.
 * @param env the Worker's; `JURISDICTION` is empty for none
 * @throws the platform's error for a jurisdiction that it does not know
 */
export const objectId = (
  namespace: DurableObjectNamespace,
  env: Pick<Cloudflare.Env, 'JURISDICTION'>,
  name: string,
): DurableObjectId => within(namespace, env).idFromName(name)

/**
 * Makes stubs of one object. Making a stub makes no call.
 * @param env the Worker's; `REGION` is a hint that counts only for the first call ever to an object
 */
export function objectStubs<Rpc>(
  namespace: DurableObjectNamespace,
  env: Pick<Cloudflare.Env, 'JURISDICTION' | 'REGION'>,
  name: string,
): () => Rpc {
  const id = objectId(namespace, env, name)
  // A jurisdiction decides the place, and the platform refuses a hint beside it.
  const options = env.REGION && !env.JURISDICTION ? { locationHint: env.REGION } : undefined
  return () =>
    within(namespace, env).get(id, options as DurableObjectNamespaceGetDurableObjectOptions) as unknown as Rpc
}

const within = (
  namespace: DurableObjectNamespace,
  { JURISDICTION }: Pick<Cloudflare.Env, 'JURISDICTION'>,
): DurableObjectNamespace =>
  JURISDICTION ? namespace.jurisdiction(JURISDICTION as DurableObjectJurisdiction) : namespace

/**
 * The name of the object that runs. All objects here are named. An object whose id has no name was reached by a
 * version of the platform that passes none on, or by its id: it must not write under another name.
 * @throws Error without a name
 */
export function nameOf({ name }: DurableObjectId): string {
  if (name === undefined) throw new Error('This Durable Object was called without its name.')
  return name
}
