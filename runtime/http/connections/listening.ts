/** How servers begin to listen, what does not end them afterwards, and how many connections they take. */
import type { Server } from "node:http";
import { errorCode } from "../../../chain/errors.js";
import type { ListenAddress } from "../../config/config-values.js";
import { openFileLimit, RESERVED_FILES } from "../../files/open-file-limit.js";
import { systemClock } from "../../process/clock.js";
import type { Logger } from "../../process/logger.js";
import { RareLine } from "../../process/rare-line.js";

/** What a server takes in any case: below it nobody could ask what is wrong. */
export const LEAST_CONNECTIONS = 8;

/** Connections that wait in the system until the process has time to take them. */
const BACKLOG = 1_024;

/**
 * Connections at once of a server that has its process to itself.
 * @param wanted where files are plenty
 * @param limit files that the process may have open
 */
export function mostConnections(wanted: number, limit = openFileLimit()): number {
  return Math.max(LEAST_CONNECTIONS, Math.min(wanted, limit - RESERVED_FILES));
}

/** Who listens where. */
export interface Listening {
  /** For messages: "the explorer". */
  readonly owner: string;
  readonly listen: ListenAddress;
  readonly log: Pick<Logger, "warn">;
  /** The fault as whoever starts the server throws it. */
  readonly faultOf: (
    code: "PORT_TAKEN" | "LISTEN_FAILED",
    message: string,
    cause: unknown,
  ) => Error;
}

/** Listens. @throws what `faultOf` makes of a port that is taken, or cannot be had */
export async function beginListening(
  server: Server,
  { owner, listen: { host, port }, log, faultOf }: Listening,
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const onError = (cause: unknown) => {
      const isTaken = errorCode(cause) === "EADDRINUSE";
      const message = isTaken
        ? `port ${port} on ${host}, wanted by ${owner}, is taken`
        : `${owner} cannot listen on ${host}:${port} (${errorCode(cause)})`;
      reject(faultOf(isTaken ? "PORT_TAKEN" : "LISTEN_FAILED", message, cause));
    };
    server.once("error", onError);
    server.listen({ host, port, backlog: BACKLOG }, () => {
      server.off("error", onError);
      outliveUntaken(server, owner, log);
      resolve();
    });
  });
}

/**
 * Keeps the process up where a server that listens cannot take a connection: the system may have no file, or
 * no memory, left for now. Nobody is told but the log, and not each time: it may be so many times a second.
 */
export function outliveUntaken(
  server: { on(event: "error", listener: (error: Error) => void): unknown },
  owner: string,
  log: Pick<Logger, "warn">,
): void {
  const untaken = new RareLine(systemClock);
  server.on("error", (err) => {
    untaken.happened((times) =>
      log.warn({ err, server: owner, times }, "a connection could not be taken"),
    );
  });
}
