/** How long work keeps its lease: as long as it comes further. */
import { expect, it } from "@jest/globals";
import { whileHolding } from "../../../../runtime/process/lease-keeper.js";
import { sleep } from "../../../../runtime/process/task.js";

const { signal } = new AbortController();

/** Renewals of a lease of 3 ms until there are `enough`, or none for a while. */
async function renewalsOf(enough: number, steps?: () => number): Promise<number> {
  let renewals = 0;
  const renew = async () => {
    renewals += 1;
    return true;
  };
  const lost = () => new Error("lost");
  const holding = { renew, lost, leaseMs: 3, signal, ...(steps === undefined ? {} : { steps }) };
  const waitOn = async (held: AbortSignal, seen: number): Promise<void> => {
    await sleep(300, { signal: held });
    if (seen !== renewals && renewals < enough) await waitOn(held, renewals);
  };
  await whileHolding(holding, (held) => waitOn(held, -1));
  return renewals;
}

it("is let go of by work that comes no further for 40 leases", async () => {
  expect(await renewalsOf(1_000)).toBe(120);
});

it("is held for as long as the work comes further", async () => {
  let steps = 0;
  const step = setInterval(() => (steps += 1), 5);
  const renewals = await renewalsOf(150, () => steps);
  clearInterval(step);
  expect(renewals).toBeGreaterThanOrEqual(150);
});
