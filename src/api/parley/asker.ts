/** Who asks, as conversations remember it. */
import type { Access } from '../../auth/access'
import type { Asker } from '../../conversation/request'

/** @param named the user that the request names; one that its key fixes wins */
export const askerOf = (access: Access, named: string | undefined): Asker => ({
  owner: access.keyId === undefined ? 'admin' : String(access.keyId),
  userId: access.embedded.user_id ?? named ?? '',
})
