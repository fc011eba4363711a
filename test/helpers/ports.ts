/** Free ports for tests. */
import { createServer } from "node:net";

/**
 * Ports from here on, so many, are given out: below those that systems hand out for connections,
 * which could take one before the test does, and between those of kits (PostgreSQL's and the node's).
 */
const FIRST_PORT = 22_000;
const PORT_COUNT = 4_500;

let next = Math.floor(Math.random() * PORT_COUNT);

/** A port of 127.0.0.1 that is free; no other call in this process is given the same soon. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < PORT_COUNT; attempt++) {
    const port = FIRST_PORT + (next++ % PORT_COUNT);
    if (await isFree(port)) return port;
  }
  throw new Error("no port is free");
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}
