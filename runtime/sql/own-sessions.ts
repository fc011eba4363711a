/** Poolers between a process and PostgreSQL: those that keep sessions are fine, others are refused. */
import { SqlError } from "./sql-errors.js";

/** Looks at each session: others that use the pooler may have had the shared one in between. */
const LOOKS = 3;

/**
 * Holds that two connections are two sessions of the server for as long as they last. A pooler in
 * transaction or statement mode gives sessions on: a lock of one process would be another's as well, and
 * what is prepared or set would be there for whoever comes next.
 * @param connections two that are open at once; each tells the server's process behind it
 * @throws SESSIONS_SHARED
 */
export async function assertOwnSessions(
  connections: readonly [() => Promise<number>, () => Promise<number>],
): Promise<void> {
  const [one, other] = [new Set<number>(), new Set<number>()];
  for (let look = 0; look < LOOKS; look += 1) {
    one.add(await connections[0]());
    other.add(await connections[1]());
  }
  if (one.size + other.size === 2 && [...one].every((pid) => !other.has(pid))) return;
  throw new SqlError(
    "SESSIONS_SHARED",
    "SESSIONS_SHARED: a pooler between this process and PostgreSQL does not keep sessions. " +
      "Set its pool mode to session, or connect to PostgreSQL itself.",
  );
}
