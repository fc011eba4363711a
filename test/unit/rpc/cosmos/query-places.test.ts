/** Places for queries: one client does not take those of all others. */
import { expect, it } from "@jest/globals";
import { type QueryFace, QueryRegistry } from "../../../../node/rpc/cosmos/registry.js";
import { loadDescriptors } from "../../../../runtime/files/descriptor-set.js";
import { createGate } from "../../../helpers/gate.js";

/** Of 256 anybody may have half, and then a tenth each; this machine has what is left. */
const HALF = 128;
const TENTH = 25;

function start() {
  const { opened, open } = createGate();
  const queries = new QueryRegistry(loadDescriptors(), {}, () => 1, 20_000);
  const { signal } = new AbortController();
  /** Asks until there is no room. @returns how many have a place now */
  const fill = async (client: string, face: QueryFace = "rest") => {
    for (let taken = 0; ; taken++) {
      const query = queries.bounded(face, { client, signal }, () => opened);
      const refusal = await Promise.race([query.catch((error: unknown) => error), turn()]);
      if (refusal === undefined) continue;
      expect(refusal).toMatchObject({ code: "UNAVAILABLE" });
      return taken;
    }
  };
  return { queries, open, fill };
}

/** What is refused is so by then. */
async function turn(): Promise<undefined> {
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
  return undefined;
}

it("are left for others by a client that asks for all, and for this machine by all clients", async () => {
  const { fill, open } = start();
  expect(await fill("10.0.0.1")).toBe(HALF);
  expect(await fill("10.0.0.1")).toBe(0);
  expect(await fill("10.0.0.2")).toBe(TENTH);
  expect(await fill("10.0.0.1", "grpc")).toBe(HALF);
  expect(await fill("127.0.0.1")).toBe(2 * HALF - HALF - TENTH);
  open();
});

it("are given back by who goes, whatever its query waits for", async () => {
  const { queries, fill } = start();
  const gone = new AbortController();
  const asker = { client: "10.0.0.1", signal: gone.signal };
  const left = queries.bounded("rest", asker, ({ signal }) => {
    return new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
    });
  });
  expect(await fill("10.0.0.1")).toBe(HALF - 1);
  gone.abort(new Error("gone"));
  await expect(left).rejects.toThrow("gone");
  expect(await fill("10.0.0.1")).toBe(1);
});
