/** The embedded server under supervision: started again when it dies, given up when it keeps dying. */
import { join } from "node:path";
import { errorCode } from "../../chain/errors.js";
import type { Clock } from "../../runtime/process/clock.js";
import type { Guardian } from "../../runtime/process/guardian.js";
import type { Logger } from "../../runtime/process/logger.js";
import { sleep } from "../../runtime/process/task.js";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../postgres/embedded-postgres.js";
import { CliError, sentenceOf } from "../errors.js";
import {
  HEALTHY_AFTER_MS,
  MAX_PORT_WAITS,
  MAX_QUICK_DEATHS,
  notStartedNow,
} from "./supervised-process.js";

/** What the supervision works with. */
export interface PostgresSupervisionOptions {
  readonly home: string;
  readonly port: number;
  readonly guardian: Guardian;
  readonly log: Logger;
  readonly clock: Clock;
  /** Why it must not be started now, for the first time or again; undefined where it may. */
  readonly startFault?: () => string | undefined;
  /** Fires where another kit has the home: the server is killed then, and writes nothing more. */
  readonly lost?: AbortSignal;
  /** Told sentences for people. */
  readonly notice: (sentence: string) => void;
  /** Called once when the server cannot be kept running. */
  readonly onGaveUp: (error: CliError) => void;
}

/** A server that is kept running. */
export interface SupervisedPostgres {
  /** Stops the server and the supervision; may be called again. */
  stop(): Promise<void>;
}

/** Waiting times between a death and the next start; clients reconnect by themselves. */
const FIRST_DELAY_MS = 200;
const MAX_DELAY_MS = 5_000;

/**
 * Starts the home's server and keeps it running.
 * @throws the embedded server's faults when the first start fails; CHILD_FAILED where it must not be started
 */
export async function superviseEmbeddedPostgres(
  options: PostgresSupervisionOptions,
  signal: AbortSignal,
): Promise<SupervisedPostgres> {
  const stopping = new AbortController();
  const { home, port, guardian, log, notice, lost } = options;
  const startOne = (startSignal: AbortSignal): Promise<EmbeddedPostgres> =>
    startEmbeddedPostgres({ home, port, log, guardian, notice, lost, signal: startSignal });
  const refuseStart = (died?: string): void => {
    const fault = options.startFault?.();
    if (fault !== undefined) throw notStartedNow("postgres", died, fault);
  };
  refuseStart();
  let server = await startOne(signal);
  const keepRunning = async (): Promise<void> => {
    let quickDeaths = 0;
    for (;;) {
      const startedMs = options.clock.monotonicMs();
      let reason = await endOf(server);
      if (stopping.signal.aborted) return;
      const livedMs = options.clock.monotonicMs() - startedMs;
      quickDeaths = livedMs > HEALTHY_AFTER_MS ? 1 : quickDeaths + 1;
      refuseStart(reason);
      notice(`postgres: ${reason}; starting it again`);
      let portWaits = 0;
      for (;;) {
        if (quickDeaths >= MAX_QUICK_DEATHS) throw tooManyDeaths(reason, home);
        const delayMs = Math.min(FIRST_DELAY_MS * 2 ** (quickDeaths + portWaits), MAX_DELAY_MS);
        await sleep(delayMs, { signal: stopping.signal });
        refuseStart(reason);
        try {
          server = await startOne(stopping.signal);
          break;
        } catch (error) {
          if (stopping.signal.aborted) return;
          // It served there before: as its clients may have that port for a while, so may any program.
          const isWaiting = errorCode(error) === "PORT_TAKEN" && portWaits < MAX_PORT_WAITS;
          if (isWaiting) portWaits += 1;
          else quickDeaths += 1;
          reason = sentenceOf(error);
          notice(`postgres: ${reason}`);
        }
      }
    }
  };
  const loop = keepRunning().catch((error: unknown) => {
    if (!stopping.signal.aborted) options.onGaveUp(asCliError(error));
  });
  return {
    async stop() {
      stopping.abort(new CliError("CHILD_FAILED", "postgres is being stopped."));
      await server.stop();
      await loop;
      // A start that was under way when the stop came has left a newer server behind.
      await server.stop();
    },
  };
}

async function endOf(server: EmbeddedPostgres): Promise<string> {
  const { code, signal, fault } = await server.exited;
  const words =
    signal === null ? `it ended with code ${String(code)}` : `it was ended by ${signal}`;
  return fault === undefined ? words : `${words}: ${fault.message}`;
}

function tooManyDeaths(reason: string, home: string): CliError {
  const log = join(home, "logs", "postgres.log");
  const message = `postgres died ${MAX_QUICK_DEATHS} times in a row (${reason}); see ${log}.`;
  return new CliError("CHILD_FAILED", message);
}

function asCliError(error: unknown): CliError {
  return error instanceof CliError
    ? error
    : new CliError("CHILD_FAILED", sentenceOf(error), { cause: error });
}
