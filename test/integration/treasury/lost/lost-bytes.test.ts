/**
 * Sweeps of which a standby has the intent and not the signed bytes: the chain has them, and the watcher has
 * booked what they moved before anybody knew whose they were.
 */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import type { Address } from "../../../../chain/address.js";
import { readOpenMatters } from "../../../../ledger/decisions/open-matters.js";
import type { Sweep } from "../../../../ledger/treasury/sweeps.js";
import { callOf } from "../../tokens/token-bench.js";
import { WALLET } from "../../../helpers/exchange/house.js";
import { ANY_SWEEP, TreasuryBench } from "../treasury-bench.js";

const ONE = 10n ** 18n;

const { signal } = new AbortController();

let bench: TreasuryBench;

beforeEach(async () => {
  bench = await TreasuryBench.open();
  await bench.bench.mine([{ to: WALLET, value: ONE }]);
  await bench.mine();
});
afterEach(() => bench.close());

async function sweepOf(address: Address): Promise<Sweep | undefined> {
  return (await bench.sweeps()).find((sweep) => sweep.address === address);
}

/** Its bytes are with the node, and the standby that takes over never had them. @returns their hash */
async function loseBytes(address: Address): Promise<string | undefined> {
  const sweeper = bench.sweeper();
  for (let round = 0; round < 5; round += 1) {
    await sweeper.round(signal);
    if ((await sweepOf(address))?.state === "sent") break;
    await bench.lane.runRound(signal);
    await bench.mine();
  }
  const sent = await sweepOf(address);
  expect(sent?.state).toBe("sent");
  await bench.bench.ledger.owner.transaction(async (tx) => {
    await tx.query(`SET LOCAL session_replication_role = replica`);
    await tx.query(`DELETE FROM sweep_attempt WHERE sweep_id = $1`, [sent?.id]);
    await tx.query(`UPDATE sweep SET state = 'ready' WHERE id = $1`, [sent?.id]);
  });
  return sent?.attempts[0]?.hash;
}

/** Long enough that a nonce without a receipt freezes its sweep. */
async function goOn(): Promise<void> {
  const sweeper = bench.sweeper();
  for (let round = 0; round < 4; round += 1) await bench.step(sweeper);
  await bench.assertEven();
}

it("are signed again, and settled by what the chain has of them", async () => {
  const address = await bench.bench.register("alice");
  await bench.bench.mine([{ to: address, value: ONE }]);
  await bench.mine();
  const hash = await loseBytes(address);
  await bench.mine();
  await goOn();
  const sweep = await sweepOf(address);
  expect(sweep).toMatchObject({ state: "settled", minedHash: hash, reason: undefined });
  expect(sweep?.blockNumber).toBeGreaterThan(0);
  // What comes later is swept as ever.
  await bench.bench.mine([{ to: address, value: ONE }]);
  await bench.mine();
  await bench.untilEmpty([address]);
});

it("are found again of tokens", async () => {
  const address = await bench.bench.register("bob");
  await bench.bench.mine([callOf("PlainToken", "mint", [address, 9n])]);
  await bench.mine();
  const hash = await loseBytes(address);
  await bench.mine();
  await goOn();
  expect(await sweepOf(address)).toMatchObject({ state: "settled", minedHash: hash });
  expect(await bench.units(WALLET, "PLAIN")).toBe(9n);
});

it("say where a token kept a part of them, which is booked as an outflow", async () => {
  bench.files.policy = bench.policyOf({ assets: { TOKEN: ANY_SWEEP, FEE: ANY_SWEEP } });
  const address = await bench.bench.register("fred");
  await bench.bench.mine([callOf("FeeToken", "mint", [address, 1_000n])]);
  await bench.mine();
  const hash = await loseBytes(address);
  await bench.mine();
  const sweeper = bench.sweeper();
  for (let round = 0; round < 4; round += 1) await bench.step(sweeper);
  expect(await sweepOf(address)).toMatchObject({
    state: "failed",
    minedHash: hash,
    reason: expect.stringContaining("booked as an outflow"),
  });
  const { outflows } = await readOpenMatters(bench.bench.database, 10);
  expect(outflows.map((outflow) => outflow.hash)).toContain(hash);
});

it("are found again where they went to another wallet of the home than was meant", async () => {
  const address = await bench.bench.register("dora");
  await bench.bench.mine([{ to: address, value: ONE }]);
  await bench.mine();
  const hash = await loseBytes(address);
  const other = await bench.bench.register("nobody");
  await bench.bench.ledger.owner.transaction(async (tx) => {
    await tx.query(`SET LOCAL session_replication_role = replica`);
    await tx.query(`UPDATE sweep SET wallet = $1`, [other]);
  });
  await bench.mine();
  await goOn();
  expect(await sweepOf(address)).toMatchObject({ state: "settled", minedHash: hash });
});

it("freeze as ever where something else used their nonce", async () => {
  const address = await bench.bench.register("carl");
  await bench.bench.mine([{ to: address, value: ONE }]);
  await bench.mine();
  await bench.sweeper().round(signal);
  const begun = await sweepOf(address);
  expect(begun?.state).toBe("ready");
  const key = bench.keys.privateKeyAt(begun?.index ?? 0);
  const from = new Wallet(`0x${Buffer.from(key).toString("hex")}`);
  await bench.bench.mine([{ from, to: WALLET, value: ONE / 2n }]);
  await bench.mine();
  const sweeper = bench.sweeper();
  for (let round = 0; round < 4; round += 1) await bench.step(sweeper);
  expect((await sweepOf(address))?.state).toBe("frozen");
});

it("are not signed again while the kill switch stops that", async () => {
  const address = await bench.bench.register("eve");
  await bench.bench.mine([{ to: address, value: ONE }]);
  await bench.mine();
  await loseBytes(address);
  await bench.mine();
  bench.killSwitch = { ...bench.killSwitch, level: "stop-sign", reason: "a drill" };
  const sweeper = bench.sweeper();
  for (let round = 0; round < 4; round += 1) await bench.step(sweeper);
  expect((await sweepOf(address))?.attempts).toEqual([]);
  bench.killSwitch = { ...bench.killSwitch, level: "none" };
  await goOn();
  expect((await sweepOf(address))?.state).toBe("settled");
});
