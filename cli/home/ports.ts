/** Whether the kit's ports are free and of use, checked for all of them before anything is started. */
import { createServer } from "node:net";
import { TAKEN_PORT_REMEDY } from "../../runtime/process/process-arguments.js";
import { CliError, systemCode } from "../errors.js";

/** Distance between the ports of neighbours, which no two default ports have. */
export const PORT_STEP = 100;

/**
 * Ports above 1023 that belong to other protocols: browsers and `fetch` open no connection to them, with
 * "bad port" or "unsafe port" (WHATWG Fetch, port blocking).
 */
const OTHER_PROTOCOLS_PORTS = new Set([
  1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669,
  6679, 6697, 10_080,
]);

/** A port that a part of the kit is going to listen on. */
export interface WantedPort {
  /** Who wants it, for people. */
  readonly part: string;
  readonly host: string;
  readonly port: number;
}

/**
 * Checks every port and reports all that cannot be used at once.
 * @throws PORT_TAKEN
 */
export async function assertPortsFree(wanted: readonly WantedPort[]): Promise<void> {
  const faults = findDoubles(wanted);
  for (const one of wanted) {
    const code = one.port === 0 ? undefined : await faultOf(one);
    if (code !== undefined) faults.push(describe(one, code));
  }
  if (faults.length === 0) return;
  const list = faults.join("; ");
  const message = `Cannot start: ${list}. ${TAKEN_PORT_REMEDY}`;
  throw new CliError("PORT_TAKEN", message, { details: { faults } });
}

/** Those of the wanted ports to which browsers and `fetch` do not connect. */
export function findBlockedPorts<T extends Pick<WantedPort, "port">>(wanted: readonly T[]): T[] {
  return wanted.filter(({ port }) => OTHER_PROTOCOLS_PORTS.has(port));
}

/** Why a port cannot be used; undefined when it can. */
async function faultOf(wanted: WantedPort): Promise<string | undefined> {
  const server = createServer();
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen({ host: wanted.host, port: wanted.port, exclusive: true }, resolve);
    });
    await new Promise<void>((resolve) => server.close(() => resolve()));
    return undefined;
  } catch (error) {
    return systemCode(error);
  }
}

function describe(wanted: WantedPort, code: string): string {
  const place = `${wanted.port} (wanted by ${wanted.part})`;
  if (code === "EADDRINUSE") return `port ${place} is taken`;
  if (code === "EACCES") return `port ${place} is not allowed for this user`;
  return `port ${place} on ${wanted.host} cannot be used: ${code}`;
}

/** Two parts that want the same port on the same or on every interface. */
function findDoubles(wanted: readonly WantedPort[]): string[] {
  const faults: string[] = [];
  wanted.forEach((one, index) => {
    for (const other of wanted.slice(index + 1)) {
      if (one.port === 0 || one.port !== other.port || !doHostsOverlap(one, other)) continue;
      faults.push(`port ${one.port} is wanted by both ${one.part} and ${other.part}`);
    }
  });
  return faults;
}

function doHostsOverlap(one: WantedPort, other: WantedPort): boolean {
  const all = ["0.0.0.0", "::"];
  return one.host === other.host || all.includes(one.host) || all.includes(other.host);
}
