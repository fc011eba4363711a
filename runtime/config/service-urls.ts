/** Where PostgreSQL and Redis are: the operator's own, else the kit's embedded server. */
import { join } from "node:path";
import { ConfigError, type ConfigFault, type Environment } from "./config.js";
import { isUrl } from "./config-values.js";
import { readSecretFile } from "./secret-file.js";

/** Port of the embedded PostgreSQL before the port offset is added. */
export const EMBEDDED_POSTGRES_PORT = 15_432;

/** Name of the role and of the database that the embedded server gives to the kit. */
export const EMBEDDED_POSTGRES_DATABASE = "causeway";

/** File with the embedded server's password. */
export function postgresPasswordPath(home: string): string {
  return join(home, "config", "postgres.password");
}

/**
 * Connection URL of the ledger's database: `DATABASE_URL`, else the embedded server with the
 * password from the home. It holds a password: never log it.
 * @throws SECRET_FILE_UNREADABLE, INVALID_CONFIG
 */
export function databaseUrl(options: {
  readonly home: string;
  readonly env: Environment;
  readonly portOffset: number;
}): string {
  assertServiceUrls(options.env, ["DATABASE_URL"]);
  const given = options.env["DATABASE_URL"];
  if (given !== undefined && given !== "") {
    return given;
  }
  const port = EMBEDDED_POSTGRES_PORT + options.portOffset;
  return embeddedDatabaseUrl({ home: options.home, port });
}

/**
 * What the embedded server's clients do whatever the shell has for other servers: it knows no TLS, and
 * the client's library would take what `PGSSLMODE`, `PGSSLNEGOTIATION` and `PGOPTIONS` say.
 */
const EMBEDDED_PARAMETERS = "sslmode=disable&sslnegotiation=postgres&options=-c%20DateStyle%3DISO";

/**
 * Connection URL of a home's embedded server on a port; holds a password.
 * @throws SECRET_FILE_UNREADABLE
 */
export function embeddedDatabaseUrl(options: {
  readonly home: string;
  readonly port: number;
}): string {
  const password = encodeURIComponent(readSecretFile(postgresPasswordPath(options.home)));
  const name = EMBEDDED_POSTGRES_DATABASE;
  return `postgres://${name}:${password}@127.0.0.1:${options.port}/${name}?${EMBEDDED_PARAMETERS}`;
}

/**
 * URL of Redis for the queue, with the password of the file that `REDIS_PASSWORD_FILE` names: never
 * log it. Undefined when the queue lives in the database.
 * @throws SECRET_FILE_UNREADABLE, INVALID_CONFIG
 */
export function redisUrl(env: Environment): string | undefined {
  assertServiceUrls(env, ["REDIS_URL"]);
  const given = env["REDIS_URL"];
  if (given === undefined || given === "") return undefined;
  const passwordFile = env["REDIS_PASSWORD_FILE"];
  if (passwordFile === undefined || passwordFile === "") return given;
  const url = new URL(given);
  url.password = encodeURIComponent(readSecretFile(passwordFile));
  return url.href;
}

/**
 * Refuses wrong ones of the variables that a process uses; those of others stand in nobody's way.
 * @throws INVALID_CONFIG
 */
export function assertServiceUrls(
  env: Environment,
  used: readonly ("DATABASE_URL" | "REDIS_URL")[],
): void {
  const faults = serviceUrlFaults(env).filter(({ key }) => used.some((name) => name === key));
  if (faults.length > 0) throw new ConfigError(faults);
}

/** What is wrong with `DATABASE_URL` and `REDIS_URL`; their values may hold passwords. */
export function serviceUrlFaults(env: Environment): readonly ConfigFault[] {
  // A user without a host, whom PostgreSQL's clients know beside a folder of sockets, is no URL by itself.
  const database = env["DATABASE_URL"]?.replace("@/", "@localhost/");
  return [
    { key: "DATABASE_URL", given: database, schemes: ["postgres", "postgresql"] },
    { key: "REDIS_URL", given: env["REDIS_URL"], schemes: ["redis", "rediss"] },
  ].flatMap(({ key, given = "", schemes }) => {
    if (given === "" || isUrl(given, schemes)) return [];
    const allowed = `a URL starting with ${schemes.join(":// or ")}://, ${ENCODED}`;
    return [{ file: "environment", key, value: "***", allowed }];
  });
}

/** What a password that was pasted lacks. */
const ENCODED = 'user and password percent-encoded ("%" as %25, "#" as %23, "/" as %2F)';
