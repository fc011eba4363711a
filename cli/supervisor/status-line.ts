/** The live line of a running kit: one line kept up to date on a terminal, else one now and then. */
import { escapeUnshowable } from "../../chain/evm/foreign-text.js";
import { blockAgeVerdict } from "../../chain/consensus/block-age.js";
import type { Clock } from "../../runtime/process/clock.js";
import { sleep } from "../../runtime/process/task.js";
import { type KitProbe, type KitStatus, readKitStatus } from "../probe/kit-status.js";

/** Where the line goes. */
export interface StatusOutput {
  readonly isTty: boolean;
  /** Columns of the terminal, 0 if unknown; longer lines would wrap and stay on the screen. */
  readonly columns: number;
  /** Whether something written before is not taken yet: the reader pauses. */
  readonly isBehind: boolean;
  write(text: string): void;
}

/** Pause between two updates on a terminal. */
const TTY_INTERVAL_MS = 1_000;

/** Pause between two lines in a log. */
const LOG_INTERVAL_MS = 30_000;

/** Width of a terminal that does not tell its own. */
const USUAL_COLUMNS = 80;

/** Shows the line until the signal fires; messages of others should go through `interrupt`. */
export interface StatusLine {
  /** Prints a message above the line. */
  interrupt(message: string): void;
  /** Runs until the signal fires; resolves then. */
  run(signal: AbortSignal): Promise<void>;
}

/** The status in one line without colour. */
export function formatStatusLine(status: KitStatus): string {
  const { blockAgeSeconds, blockIntervalMs } = status;
  const figures = [
    `height ${figure(status.height)}`,
    `block age ${figure(blockAgeSeconds, " s")}${ageWarning(blockAgeSeconds, blockIntervalMs)}`,
    `watcher lag ${figure(status.watcherLagBlocks)}`,
    `credited since start ${figure(status.creditedDeposits)}`,
    `withdrawals in flight ${figure(status.withdrawalsInFlight)}`,
  ];
  const problems = status.parts
    .filter(({ ready }) => !ready)
    .map(({ part, reason }) => `${part} NOT READY: ${reason}`);
  return [figures.join(" | "), ...problems].join(" | ");
}

/** Creates the line; nothing is printed before `run`. */
export function createStatusLine(probe: KitProbe, output: StatusOutput): StatusLine {
  let shown = "";
  const clear = (): void => {
    if (output.isTty && shown !== "") output.write("\r\u001b[2K");
    shown = "";
  };
  const show = (status: string): void => {
    const line = escapeUnshowable(status, "one");
    // It is of this second only: a reader that pauses for days finds one line, not all of them.
    if (output.isBehind) return;
    if (!output.isTty) {
      output.write(`${line}\n`);
      return;
    }
    clear();
    shown = fit(line, output.columns);
    output.write(shown);
  };
  return {
    interrupt(message) {
      const kept = shown;
      clear();
      output.write(`${escapeUnshowable(message, "many")}\n`);
      if (output.isTty && kept !== "" && !output.isBehind) {
        shown = kept;
        output.write(kept);
      }
    },
    async run(signal) {
      try {
        await loop(probe, { show, output, signal, clock: probe.clock });
      } catch (error) {
        if (!signal.aborted) throw error;
      } finally {
        clear();
      }
    },
  };
}

function ageWarning(ageSeconds: number | undefined, intervalMs: number | undefined): string {
  if (ageSeconds === undefined || blockAgeVerdict(ageSeconds, intervalMs) === "pass") return "";
  return ageSeconds < 0 ? " (ahead of the clock!)" : " (old!)";
}

function figure(value: number | undefined, unit = ""): string {
  return value === undefined ? "?" : `${Math.round(value)}${unit}`;
}

/** Cuts a line to the terminal's width, so that the carriage return really overwrites it. */
function fit(line: string, terminalColumns: number): string {
  const columns = terminalColumns > 0 ? terminalColumns : USUAL_COLUMNS;
  return line.length < columns ? line : `${line.slice(0, Math.max(0, columns - 2))}…`;
}

async function loop(
  probe: KitProbe,
  options: {
    readonly show: (line: string) => void;
    readonly output: StatusOutput;
    readonly signal: AbortSignal;
    readonly clock: Clock;
  },
): Promise<never> {
  const { show, output, signal } = options;
  for (;;) {
    show(formatStatusLine(await readKitStatus(probe, signal)));
    await sleep(output.isTty ? TTY_INTERVAL_MS : LOG_INTERVAL_MS, { signal });
  }
}
