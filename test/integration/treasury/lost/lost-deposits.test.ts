/** Sweeps of coins on a chain that came back without the deposits that they were to bring. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import type { Address } from "../../../../chain/address.js";
import { broughtUnits } from "../../../../ledger/treasury/sweeps.js";
import { callOf } from "../../tokens/token-bench.js";
import { WALLET } from "../../../helpers/exchange/house.js";
import { ANY_SWEEP, PRICE, TreasuryBench } from "../treasury-bench.js";

const { signal } = new AbortController();

const LOST_ATOKEN = 10n ** 16n;
const LEFT_ATOKEN = 10n ** 15n;

/** Of coins at the price of the bench. */
const FEE_ATOKEN = 21_000n * PRICE;

let bench: TreasuryBench;
let alice: Address;
/** The block that the chain comes back to: alice has an address, and nothing in it. */
let kept: number;

beforeEach(async () => {
  bench = await TreasuryBench.open();
  await bench.bench.mine([{ to: WALLET, value: 10n ** 17n }]);
  await bench.mine();
  alice = await bench.bench.register("alice");
  kept = head();
});
afterEach(() => bench.close());

const head = () => bench.bench.chain.chain.view.head().height;

async function deposit(valueAtoken: bigint): Promise<void> {
  await bench.bench.mine([{ to: alice, value: valueAtoken }]);
  await bench.mine();
}

/** Signed and sent, and in no block. */
async function send(): Promise<void> {
  const treasury = bench.sweeper();
  await treasury.round(signal);
  await treasury.round(signal);
}

/** Some blocks more than the chain ever had, the watcher gone back. */
async function comeBack(): Promise<void> {
  const lost = head();
  bench = await bench.without(kept);
  while (head() <= lost) await bench.bench.mine([]);
  await bench.bench.recover();
  await bench.mine();
}

const states = async () => (await bench.sweeps()).map(({ state }) => state);

const attempts = async () => (await bench.sweeps()).map((sweep) => sweep.attempts.length);

it("bring what there is where less came again than they were signed for", async () => {
  await deposit(LOST_ATOKEN);
  await send();
  expect(await states()).toEqual(["sent"]);
  await comeBack();
  await deposit(LEFT_ATOKEN);
  await bench.untilEmpty([alice]);
  const [sweep] = await bench.sweeps();
  // A tenth dearer than the bytes that some pool may have kept.
  const feeAtoken = (FEE_ATOKEN * 11n) / 10n;
  expect([sweep?.state, sweep && broughtUnits(sweep)]).toEqual([
    "settled",
    LEFT_ATOKEN - feeAtoken,
  ]);
});

it("leave what comes again behind their signature to the next one", async () => {
  await deposit(LOST_ATOKEN);
  await bench.rounds(3);
  await comeBack();
  await deposit(LEFT_ATOKEN);
  await send();
  expect(await attempts()).toEqual([2]);
  await deposit(LOST_ATOKEN);
  await bench.untilEmpty([alice]);
  expect(await states()).toEqual(["settled", "settled"]);
  expect(await attempts()).toEqual([2, 1]);
});

it("wait while there is less than the policy sweeps, and for a node that is behind", async () => {
  const assets = { TOKEN: { ...ANY_SWEEP, sweepMinimumUnits: LEFT_ATOKEN } };
  bench.files.policy = bench.policyOf({ assets });
  await deposit(LEFT_ATOKEN * 2n);
  const { height } = await bench.node.view(alice, { signal });
  await deposit(LOST_ATOKEN);
  await bench.sweeper().round(signal);
  await bench.sweeper({ node: { ...bench.node, send: async () => [] } }).round(signal);
  const late = { ...(await bench.node.view(alice, { signal })), height };
  await bench.sweeper({ node: { ...bench.node, view: async () => late } }).round(signal);
  expect(await attempts()).toEqual([1]);
  await comeBack();
  bench.files.policy = bench.policyOf({ assets });
  await deposit(LEFT_ATOKEN);
  await bench.rounds(3);
  expect([await states(), await attempts()]).toEqual([["sent"], [1]]);
  await deposit(LEFT_ATOKEN);
  await bench.untilEmpty([alice]);
  expect(await states()).toEqual(["settled"]);
});

it("bring what there is where they had been mined, before the next of their address", async () => {
  await deposit(LOST_ATOKEN);
  await bench.rounds(3);
  await deposit(LOST_ATOKEN);
  await send();
  expect(await states()).toEqual(["settled", "sent"]);
  await comeBack();
  await deposit(LEFT_ATOKEN);
  await bench.untilEmpty([alice]);
  expect(await states()).toEqual(["settled", "sent"]);
  await deposit(LEFT_ATOKEN);
  await bench.untilEmpty([alice]);
  expect(await states()).toEqual(["settled", "settled"]);
});

it("let tokens go on that wait for their nonce, or for gas, once coins come", async () => {
  const bob = await bench.bench.register("bob");
  kept = head();
  await bench.bench.mine([
    { to: alice, value: LOST_ATOKEN },
    { to: bob, value: LEFT_ATOKEN },
    callOf("PlainToken", "mint", [bob, 5n]),
  ]);
  await bench.mine();
  await bench.rounds(3);
  await comeBack();
  await bench.bench.mine([
    callOf("PlainToken", "mint", [bob, 5n]),
    callOf("PlainToken", "mint", [alice, 5n]),
  ]);
  await bench.mine();
  await bench.rounds(3);
  const tokens = async () =>
    Promise.all([alice, bob].map((address) => bench.units(address, "PLAIN")));
  expect(await tokens()).toEqual([5n, 5n]);
  await bench.bench.mine([alice, bob].map((to) => ({ to, value: LEFT_ATOKEN })));
  await bench.mine();
  for (let round = 0; round < 6; round += 1) {
    await bench.worker.query(`UPDATE sweep_due SET due_at = now() WHERE due_at <> 'infinity'`);
    await bench.rounds(1);
  }
  expect(await tokens()).toEqual([0n, 0n]);
  await bench.untilEmpty([alice, bob]);
});
