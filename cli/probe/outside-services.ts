/**
 * A PostgreSQL or Redis of the operator's own, looked at before anything is started. The processes
 * wait for such a server without an end, because it may just be restarting; the person who runs
 * `npm start` wants to be told that nothing answers there.
 */
import { connect } from "node:net";
import { errorCode, errorMessage } from "../../chain/errors.js";
import type { Environment } from "../../runtime/config/config.js";
import { createLogger } from "../../runtime/process/logger.js";
import { sleep, withTimeout } from "../../runtime/process/task.js";
import { CliError, systemCode } from "../errors.js";

/** The variables that are looked at, with the port that a URL means when it names none. */
const USUAL_PORTS = { DATABASE_URL: 5_432, REDIS_URL: 6_379 } as const;

/** Time for one connection; a server on the same continent answers within a second. */
const CONNECT_TIMEOUT_MS = 3_000;

/** Servers that are started together with the kit get this long; the kit starts its own after. */
const PATIENCE_MS = 10_000;

const POLL_MS = 500;

/**
 * Waits a little until the database that the environment names takes connections, and logs in once. Redis
 * only wakes the worker, so one that does not answer is told and no reason not to start. No password is
 * shown.
 * @throws SERVICE_UNREACHABLE when the database does not answer, SERVICE_REFUSES when it lets nobody in
 */
export async function assertServicesAnswer(
  env: Environment,
  options: {
    readonly signal: AbortSignal;
    /** Told a sentence about a Redis that does not answer. */
    readonly notice: (sentence: string) => void;
    readonly patienceMs?: number;
  },
): Promise<void> {
  const queueFault = await faultOf("REDIS_URL", env);
  if (queueFault !== undefined) {
    options.notice(`${queueFault}: withdrawals are paid, but later than with a queue.`);
  }
  const deadline = performance.now() + (options.patienceMs ?? PATIENCE_MS);
  for (;;) {
    const fault = await faultOf("DATABASE_URL", env);
    if (fault === undefined) return assertLetsIn(env["DATABASE_URL"] ?? "", options.signal);
    if (performance.now() >= deadline) {
      throw new CliError("SERVICE_UNREACHABLE", `Cannot start: ${fault}.`, { retriable: true });
    }
    await sleep(POLL_MS, { signal: options.signal });
  }
}

/**
 * Refuses a database that takes no connections now, for commands that somebody waits for.
 * @param url connection URL; only host and port of it are used and shown
 * @param remedy what the reader can do, as the end of the sentence
 * @throws SERVICE_UNREACHABLE
 */
export async function assertDatabaseAnswers(url: string, remedy: string): Promise<void> {
  const silent = await findSilent(url, USUAL_PORTS.DATABASE_URL);
  if (silent === undefined) return;
  const message = `No database answers at ${silent.place} (${silent.code}): ${remedy}.`;
  throw new CliError("SERVICE_UNREACHABLE", message, { retriable: true });
}

/**
 * Refuses a database that says no to this very user, password, name or encryption: each process that needs
 * it would meet that again, until the kit gives up. What may pass is left to them.
 */
async function assertLetsIn(url: string, signal: AbortSignal): Promise<void> {
  const place = placeOf(url, USUAL_PORTS.DATABASE_URL);
  if (place === undefined) return;
  // Loaded here: only who has such a server needs its client.
  const { openSqlSession } = await import("../../runtime/sql/sql-session.js");
  const log = createLogger({ component: "kit", level: "silent" });
  try {
    const logIn = async () => {
      await (await openSqlSession({ url, log, applicationName: "causeway-kit" })).close();
    };
    await withTimeout(logIn, { timeoutMs: CONNECT_TIMEOUT_MS, signal });
  } catch (error) {
    signal.throwIfAborted();
    if (errorCode(error) !== "DATABASE_FAULT") return;
    const reason = errorMessage(error instanceof Error ? (error.cause ?? error) : error);
    throw new CliError(
      "SERVICE_REFUSES",
      `Cannot start: the database at ${place.host}:${place.port}, which DATABASE_URL names, refuses: ` +
        `${reason}.`,
      { cause: error },
    );
  }
}

/** Why a server cannot be reached; undefined when it can, or when a socket file is meant. */
async function faultOf(
  key: keyof typeof USUAL_PORTS,
  env: Environment,
): Promise<string | undefined> {
  const silent = await findSilent(env[key] ?? "", USUAL_PORTS[key]);
  if (silent === undefined) return undefined;
  return `nothing answers at ${silent.place}, which ${key} names (${silent.code})`;
}

async function findSilent(
  text: string,
  usualPort: number,
): Promise<{ readonly place: string; readonly code: string } | undefined> {
  const place = placeOf(text, usualPort);
  if (place === undefined) return undefined;
  const { host, port } = place;
  const code = await connectFault(host, port);
  return code === undefined ? undefined : { place: `${host}:${port}`, code };
}

/** Where a URL leads; undefined for none, a socket file and several hosts. */
function placeOf(
  text: string,
  usualPort: number,
): { readonly host: string; readonly port: number } | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const isList = url.host.includes(",");
  if (host === "" || isList || url.searchParams.has("host")) return undefined;
  return { host, port: url.port === "" ? usualPort : Number(url.port) };
}

async function connectFault(host: string, port: number): Promise<string | undefined> {
  const socket = connect({ host, port });
  try {
    return await new Promise((resolve) => {
      socket.setTimeout(CONNECT_TIMEOUT_MS, () => resolve("time-out"));
      socket.once("connect", () => resolve(undefined));
      socket.once("error", (error) => resolve(systemCode(error)));
    });
  } finally {
    socket.destroy();
  }
}
