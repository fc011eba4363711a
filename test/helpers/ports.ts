/** Free ports for tests. */

const BIN = "../../bin";
const ports: { readonly freePort: () => Promise<number> } = await import(`${BIN}/test-ports.mjs`);

/** A port of 127.0.0.1 that is free, and that no other file or call of this run is given soon. */
export const { freePort } = ports;
