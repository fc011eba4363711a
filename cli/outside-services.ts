/**
 * A PostgreSQL or Redis of the operator's own, looked at before anything is started. The processes
 * wait for such a server without an end, because it may just be restarting; the person who runs
 * `npm start` wants to be told that nothing answers there.
 */
import { connect } from "node:net";
import type { Environment } from "../runtime/config.js";
import { sleep } from "../runtime/task.js";
import { CliError, systemCode } from "./errors.js";

/** What is looked at, with the port that its URL means when it names none. */
const SERVICES = [
  { key: "DATABASE_URL", usualPort: 5_432 },
  { key: "REDIS_URL", usualPort: 6_379 },
] as const;

/** Time for one connection; a server on the same continent answers within a second. */
const CONNECT_TIMEOUT_MS = 3_000;

/** Servers that are started together with the kit get this long; the kit starts its own after. */
const PATIENCE_MS = 10_000;

const POLL_MS = 500;

/**
 * Waits a little until every server that the environment names takes connections. Neither user nor
 * password is used or shown.
 * @throws SERVICE_UNREACHABLE naming every server that does not answer
 */
export async function assertServicesAnswer(
  env: Environment,
  options: { readonly signal: AbortSignal; readonly patienceMs?: number },
): Promise<void> {
  const deadline = performance.now() + (options.patienceMs ?? PATIENCE_MS);
  for (;;) {
    const reasons = await Promise.all(SERVICES.map((service) => faultOf(service, env)));
    const faults = reasons.filter((reason) => reason !== undefined);
    if (faults.length === 0) return;
    if (performance.now() >= deadline) {
      const message = `Cannot start: ${faults.join("; ")}.`;
      throw new CliError("SERVICE_UNREACHABLE", message, { details: { faults }, retriable: true });
    }
    await sleep(POLL_MS, { signal: options.signal });
  }
}

/** Why a server cannot be reached; undefined when it can, or when a socket file is meant. */
async function faultOf(
  service: (typeof SERVICES)[number],
  env: Environment,
): Promise<string | undefined> {
  const text = env[service.key] ?? "";
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const isList = url.host.includes(",");
  if (host === "" || isList || url.searchParams.has("host")) return undefined;
  const port = url.port === "" ? service.usualPort : Number(url.port);
  const code = await connectFault(host, port);
  const place = `nothing answers at ${host}:${port}, which ${service.key} names`;
  return code === undefined ? undefined : `${place} (${code})`;
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
