/** Free ports for tests and the services that they are given. */
import { createServer } from "node:net";
import { MOST_WORKERS } from "./test-modes.mjs";

export { MOST_WORKERS };

/**
 * Ports from here on, so many, are given out: below those that systems hand out for connections,
 * which could take one before its user does, and between those of kits (PostgreSQL's and the node's).
 */
const FIRST_PORT = 22_000;
const PORT_COUNT = 4_500;

/**
 * Each worker of a run has a share of its own, and what starts the run another: nobody takes what
 * another one was given and has not opened yet, or keeps closed on purpose.
 */
const SHARES = MOST_WORKERS + 1;
const OWN_COUNT = PORT_COUNT / SHARES;
const OWN_FIRST = FIRST_PORT + (Number(process.env.JEST_WORKER_ID ?? 0) % SHARES) * OWN_COUNT;

let next = Math.floor(Math.random() * OWN_COUNT);

/** A port of 127.0.0.1 that is free, and that no other file or call of this run is given soon. */
export async function freePort() {
  for (let attempt = 0; attempt < OWN_COUNT; attempt++) {
    const port = OWN_FIRST + (next++ % OWN_COUNT);
    if (await isFree(port)) return port;
  }
  throw new Error("no port is free");
}

function isFree(port) {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}
