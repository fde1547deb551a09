/**
 * The mark of the Worker that a database belongs to: one row, written before anything else is
 * (src/db/owner.ts says why, and has the same table).
 */

export const CREATE_OWNER =
  'CREATE TABLE IF NOT EXISTS owner (id INTEGER PRIMARY KEY CHECK (id = 1), worker TEXT, namespace TEXT)'

export const READ_OWNER = 'SELECT worker FROM owner'

/**
 * Marks a database that has no name on it.
 * @param {string} worker
 * @returns {string} SQL
 */
export const markOwner = (worker) =>
  `${CREATE_OWNER}; INSERT INTO owner (id, worker) VALUES (1, '${worker.replaceAll("'", "''")}') ON CONFLICT (id) DO UPDATE SET worker = excluded.worker WHERE owner.worker IS NULL`
