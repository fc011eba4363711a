/** Structured logs: one JSON object per line on stdout, constant message plus fields. */
import { destination as openDestination, pino, stdTimeFunctions } from "pino";

/** Fields of a log line: plain data, never secrets, raw bodies or raw peer data. */
export type LogFields = Readonly<Record<string, unknown>>;

/** One level's method: `log.info({ height }, "block committed")` or only a message. */
export interface LogMethod {
  (fields: LogFields, message: string): void;
  (message: string): void;
}

/**
 * Levels as in the house style: error = someone must act, warn = may need action, info = rare,
 * debug = per request. An error object goes into the field `err`.
 */
export interface Logger {
  readonly debug: LogMethod;
  readonly info: LogMethod;
  readonly warn: LogMethod;
  readonly error: LogMethod;
  /** The same log with further fields on every line. */
  child(fields: LogFields): Logger;
}

/** Lowest level that is written; "silent" writes nothing. */
export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

/** What `createLogger` needs. */
export interface LoggerOptions {
  /** Name of the process or part, written as `component` on every line. */
  readonly component: string;
  /** Default "info". */
  readonly level?: LogLevel;
  /** Receives each finished line, newline included; default is stdout. */
  readonly destination?: { write(line: string): void };
}

/** Field names whose values are replaced before a line is written, as a second line of defence. */
const REDACTED_FIELDS = [
  "password",
  "passphrase",
  "secret",
  "privateKey",
  "apiKey",
  "authorization",
];

/** Makes the log of one process or part. Times are RFC 3339 UTC in the field `time`. */
export function createLogger(options: LoggerOptions): Logger {
  const settings = {
    level: options.level ?? "info",
    base: { component: options.component },
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: {
      paths: REDACTED_FIELDS.flatMap((name) => [name, `*.${name}`]),
      censor: "***",
    },
  };
  return pino(settings, options.destination ?? openStandardOutput());
}

/** Lines that a full disk does not take are kept up to here and written when it does; others are lost. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;

function openStandardOutput() {
  // Written at once: the last lines before a kill are the ones that explain it.
  const output = openDestination({ fd: 1, sync: true, maxLength: MAX_WAITING_BYTES });
  // Without a listener a fault of the disk would be thrown at whatever logs, in the middle of its work.
  output.on("error", () => undefined);
  return output;
}
