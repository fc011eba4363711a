/** What every connection says to the server once it is open, whatever the server's own settings are. */
import { errorCode } from "../../chain/errors.js";

/**
 * How a connection learns that its server is gone without a word, with its machine or the way to it: after
 * ten seconds of silence it is asked every second, and ended after ten questions. With the system's own
 * times a statement would be waited for two hours, and a notification for ever. That is for what the server
 * has received; see `ANSWER_TIMEOUT_MS` for the rest.
 */
export const KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelayMillis: 10_000 } as const;

/** Time to get a connection, from a pool or the server, before the call fails as unavailable. */
export const CONNECT_TIMEOUT_MS = 10_000;

/** What is asked of a connection here. */
interface Queried {
  query(text: string): Promise<unknown>;
}

/**
 * Sets a session, by one text that is sent once. Not asked for as the connection opens: poolers refuse
 * connections that do.
 *
 * A connection that idles inside a transaction (a stopped process) loses its locks after the given time.
 * One that idles outside of them keeps what it has locked, however soon a server ends others that do: it has
 * little to say while another connection migrates, or while a node is waited for.
 * Names without a schema are those of `public` alone: else a schema that is called as the session's role
 * comes before it, and any role that may make schemas makes that.
 * The server compiles no statement to machine code: its estimate of a short one over several tables, above
 * all young ones, is high enough to begin with that, and it takes longer than the statement.
 * Times are written as the driver reads them: in another style it takes them for nothing.
 * A statement by itself sees what others have committed while it waited for them, as transactions that say so
 * do: isolated more strictly, it would fail for each row that another has changed meanwhile. Whether it may
 * write at all stays the server's word: some are made read-only when their disk is nearly full.
 * A server ends the statement of a client that is gone, which it would not notice while it waits for a lock:
 * what was given up would go on, and its sessions would fill the server (PostgreSQL 14 and newer, on systems
 * that tell it so: elsewhere it refuses, and goes without).
 * A commit is answered when it is on the server's disk, also where the server is set to answer sooner: a
 * crash of it would take back what clients were told. What it says about standbys stays.
 * @param idleInTransactionMs an integer above 0
 * @throws what the connection throws
 */
export async function setSession(connection: Queried, idleInTransactionMs: number): Promise<void> {
  const idle = `SET idle_in_transaction_session_timeout = ${idleInTransactionMs}`;
  const everywhere = [idle, ...FIXED, IDLES, COMMITS_ON_DISK];
  try {
    await connection.query([...everywhere, LOOKS_FOR_ITS_CLIENT].join("; "));
  } catch (error) {
    if (errorCode(error) !== INVALID_VALUE) throw error;
    // With one of them the server has taken back all.
    await connection.query(everywhere.join("; "));
  }
}

/** PostgreSQL's `invalid_parameter_value`. */
const INVALID_VALUE = "22023";

const FIXED = [
  "SET jit = off",
  "SET search_path = public",
  "SET datestyle = ISO",
  "SET default_transaction_isolation = 'read committed'",
];

/** PostgreSQL 14 and newer. */
const IDLES =
  "SELECT set_config('idle_session_timeout', '0', false) " +
  "WHERE current_setting('idle_session_timeout', true) IS NOT NULL";

/** Asked by its name: a list of all settings is a millisecond's work for the server. */
const LOOKS_FOR_ITS_CLIENT =
  "SELECT set_config('client_connection_check_interval', '10s', false) " +
  "WHERE current_setting('client_connection_check_interval', true) IS NOT NULL";

const COMMITS_ON_DISK =
  "SELECT set_config('synchronous_commit', 'on', false) " +
  "WHERE current_setting('synchronous_commit') = 'off'";
