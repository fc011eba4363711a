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

/** Runs of the tests on one machine that have places of their own. */
export const RUNS = 7;

/**
 * Takes one of the machine's places for a run of the tests, for as long as this process lives: whoever
 * listens on a place's port has it, and the system lets go of it however the process ends.
 * @param {number} firstPort of so many as there are places
 * @returns {Promise<number>} below RUNS; one that another run has where all are taken
 */
export async function claimRun(firstPort = FIRST_PORT - RUNS) {
  // Not always the first that is free: what a killed run leaves ends some seconds behind it.
  for (let place = 0; place < RUNS; place++) {
    const run = (process.pid + place) % RUNS;
    if (await claim(firstPort + run)) return run;
  }
  return process.pid % RUNS;
}

function claim(port) {
  const server = createServer((socket) => socket.destroy()).unref();
  return new Promise((resolve) => {
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => resolve(true));
  });
}

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
