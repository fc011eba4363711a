/** Free ports for tests. */
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

// From the clone's folder: benchmarks are compiled to another one.
const { href } = pathToFileURL(resolve("bin", "test-ports.mjs"));
const ports: { readonly freePort: () => Promise<number> } = await import(href);

/** A port of 127.0.0.1 that is free, and that no other file or call of this run is given soon. */
export const { freePort } = ports;
