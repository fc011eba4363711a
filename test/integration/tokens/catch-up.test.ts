/**
 * A watcher that is far behind, on a real chain: it reads which accounts blocks name, asks for the
 * transactions of its own alone, and credits all that came, whoever registered meanwhile.
 */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Address } from "../../../chain/address.js";
import { listDeposits } from "../../../ledger/deposits/deposit-queries.js";
import { createRandom } from "../../helpers/random.js";
import { callOf, depositKey, ISSUER, type Message, TokenBench } from "./token-bench.js";

const SEED = 20_261_126;
const BLOCKS = 100;
const STRANGER = `0x${"88".repeat(20)}` as Address;

let bench: TokenBench;

beforeAll(async () => {
  bench = await TokenBench.open();
  await bench.watch();
  await bench.deploy();
  await bench.mine([callOf("PlainToken", "mint", [ISSUER.address, 10n ** 12n])]);
});
afterAll(() => bench.close());

/**
 * Blocks with payments in coins and, but to the one who is late, in tokens.
 * @returns what has to be credited
 */
async function pay(ours: readonly Address[], late: Address): Promise<string[]> {
  const random = createRandom(SEED);
  const expected: string[] = [];
  for (let block = 0; block < BLOCKS; block += 1) {
    const payments = Array.from({ length: random.integer(4) }, () => {
      const to = random.pick([...ours, late, STRANGER]);
      const asset = to !== late && random.integer(2) === 0 ? "PLAIN" : "TOKEN";
      return { to, asset, units: BigInt(1 + random.integer(1_000_000)) };
    });
    const hashes = await bench.mine(
      payments.map(({ to, asset, units }): Message => {
        if (asset === "TOKEN") return { to, value: units };
        return callOf("PlainToken", "transfer", [to, units]);
      }),
    );
    for (const [index, { to, asset, units }] of payments.entries()) {
      if (to !== STRANGER) expected.push(`${hashes[index]} ${to} ${asset} ${units}`);
    }
  }
  // Two more confirm the last.
  for (let block = 0; block < 2; block += 1) await bench.mine([]);
  return expected.toSorted();
}

async function credited(): Promise<string[]> {
  const filter = { afterSeq: 0, limit: 1_000, status: "credited" } as const;
  const deposits = await listDeposits(bench.database, filter);
  return deposits
    .map(({ txHash, address, asset, amountUnits }) =>
      [txHash, address, asset, amountUnits].join(" "),
    )
    .toSorted();
}

it("credits all that came, and reads few blocks as a whole", async () => {
  const ours = [await bench.register("alice"), await bench.register("bob")];
  await bench.caughtUp();
  await bench.stopWatching();
  const late = depositKey(2).address.toLowerCase() as Address;
  const expected = await pay(ours, late);
  const asked = { whole: 0, ranges: 0 };
  const { source } = bench;
  const former = { ...source };
  source.block = (...given) => {
    asked.whole += 1;
    return former.block(...given);
  };
  source.accountBlocks = async (...given) => {
    const blocks = await former.accountBlocks(...given);
    asked.ranges += 1;
    // Somebody registers who is paid by these blocks, after they were asked for.
    if (asked.ranges === 2) expect(await bench.register("carol")).toBe(late);
    return blocks;
  };
  await bench.watch();
  await bench.caughtUp();
  expect([SEED, await credited()]).toEqual([SEED, expected]);
  expect(expected.filter((line) => line.includes(late)).length).toBeGreaterThan(10);
  expect(asked.ranges).toBeGreaterThan(3);
  // The first round alone is far behind: the head is read as every Data API has it.
  expect(asked.whole).toBeLessThan(5);
  expect((await bench.reconcile()).clean).toBe(true);
});
