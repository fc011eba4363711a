/** A chain that came back without blocks in which deposit addresses were swept. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import type { Address } from "../../../../chain/address.js";
import { present } from "../../../../chain/errors.js";
import {
  type KillSwitchState,
  SWITCH_UNTOUCHED,
} from "../../../../ledger/kill-switch/kill-switch-level.js";
import { listSweeps, type Sweep } from "../../../../ledger/treasury/sweeps.js";
import type { HotWallet } from "../../../../ledger/wallets/wallet.js";
import {
  drainWallet,
  reactivateWallet,
  registerWallets,
  retireWallet,
} from "../../../../ledger/wallets/wallet-registry.js";
import type { JsonRpcClient } from "../../../../rpc-client/json-rpc.js";
import type { Sweeper } from "../../../../withdrawal-worker/treasury/sweeper.js";
import { testAddress } from "../../../helpers/chains/fake-chain.js";
import { holdKeys, SweeperOfHeldKeys } from "../../../helpers/exchange/held-keys.js";
import { Desk, STRANGER, TOKEN, WALLET } from "../../recovery/desk.js";
import { createPatientClient } from "../../../helpers/exchange/patient-node.js";
import { treasuryOf } from "../desk-treasury.js";

/** A hot wallet that is never retired. */
const SECOND = testAddress(0x5ec);

let desk: Desk;
let rpc: JsonRpcClient;

beforeEach(async () => {
  desk = await Desk.open();
  rpc = createPatientClient(desk.chain.url);
});
afterEach(async () => {
  rpc.close();
  await desk.close();
});

/** A treasury that has just started, as after every restore, over wallets whose keys are held. */
async function sweeper(
  wallets: readonly Address[] = [WALLET],
  readSwitch = (): KillSwitchState => SWITCH_UNTOUCHED,
): Promise<Sweeper> {
  const parts = await treasuryOf(desk, { rpc, wallets, readSwitch });
  return new SweeperOfHeldKeys(parts, () => holdKeys(desk.database, wallets));
}

/** Decided, signed and sent, mined, booked. */
async function sweep(treasury: Sweeper): Promise<void> {
  await treasury.round(desk.signal);
  await treasury.round(desk.signal);
  desk.chain.mine();
  await desk.watch();
}

function sweeps(): Promise<Sweep[]> {
  return listSweeps(desk.database, { afterId: 0, limit: 10 });
}

const word = { operator: "ann", reason: "its key is in doubt" };

/** As where nothing is left at the first wallet. */
function retire({ force }: { readonly force: boolean }): Promise<HotWallet> {
  const empty = { balanceAtoken: 0n, tokens: [], height: desk.chain.head, dustAtoken: 0n };
  return retireWallet(desk.database, WALLET, { ...word, ...empty, force });
}

async function registerSecond(): Promise<void> {
  await registerWallets(desk.database, [{ address: SECOND, label: "second", ...word }]);
}

/** A sweep that was settled and that the chain has lost; the watcher has gone back. */
async function vanishedSweep(): Promise<{ readonly address: Address; readonly made: Sweep }> {
  const { address } = await desk.register("alice");
  desk.pay([address, TOKEN]);
  desk.chain.mine();
  await desk.watch();
  const kept = desk.chain.head;
  await sweep(await sweeper());
  const [made] = await listSweeps(desk.database, { afterId: 0, limit: 10 });
  expect([made?.state, desk.chain.balances.get(address)]).toEqual(["settled", 0n]);

  await desk.loseAbove(kept);
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  await desk.watch();
  expect(desk.chain.balances.get(address)).toBe(TOKEN);
  return { address, made: present(made, "the sweep") };
}

it("makes a sweep again to another wallet where its own was retired meanwhile", async () => {
  const { address, made } = await vanishedSweep();
  await drainWallet(desk.database, WALLET, word);
  await retire({ force: true });
  await registerSecond();
  // Opened again, and nobody holds its key: as good as retired.
  await drainWallet(desk.database, WALLET, word);
  await reactivateWallet(desk.database, WALLET, word);
  await desk.database.query(`UPDATE hot_wallet SET key_held_until = NULL`);
  const parts = await treasuryOf(desk, { rpc, wallets: [WALLET, SECOND] });
  const treasury = new SweeperOfHeldKeys(parts, () => holdKeys(desk.database, [SECOND]));
  const before = desk.chain.balances.get(WALLET);
  await sweep(treasury);
  const [again] = await sweeps();
  expect([again?.state, again?.wallet, again?.gas?.nonce]).toEqual(["settled", SECOND, 0n]);
  expect(again?.minedHash).not.toBe(made.minedHash);
  expect(desk.chain.balances.get(address)).toBe(0n);
  expect(desk.chain.balances.get(WALLET)).toBe(before);
  // What comes to the address later is not held up.
  desk.pay([address, 2n * TOKEN]);
  desk.chain.mine();
  await desk.watch();
  await desk.database.query(`UPDATE sweep_due SET due_at = now() WHERE due_at <> 'infinity'`);
  await sweep(treasury);
  expect(desk.chain.balances.get(address)).toBe(0n);
  const { code, text } = await desk.causeway("reconcile");
  expect({ code, text: code === 0 ? "" : text }).toEqual({ code: 0, text: "" });
});

it("signs one again to another wallet while a pool has what goes to the former", async () => {
  const { address, made } = await vanishedSweep();
  desk.chain.unmined.add(WALLET);
  await (await sweeper()).round(desk.signal);
  expect(desk.chain.poolSize).toBe(1);
  await registerSecond();
  await drainWallet(desk.database, WALLET, word);
  // Nothing dearer gets to the node at first, as where the process ends between the commit and this.
  let isMute = true;
  const parts = await treasuryOf(desk, { rpc, wallets: [WALLET, SECOND] });
  const node = {
    ...parts.node,
    send: async (...call: Parameters<typeof parts.node.send>) =>
      isMute ? [] : parts.node.send(...call),
  };
  const treasury = new SweeperOfHeldKeys({ ...parts, node }, () =>
    holdKeys(desk.database, [WALLET, SECOND]),
  );
  const look = async () => {
    await desk.database.query(`UPDATE sweep_due SET due_at = now() WHERE due_at <> 'infinity'`);
    await treasury.round(desk.signal);
  };
  await look();
  isMute = false;
  await look();
  await look();
  const [signed] = await sweeps();
  expect(signed?.attempts.map(({ wallet }) => wallet)).toEqual([WALLET, SECOND]);
  desk.chain.unmined.clear();
  desk.chain.mine();
  await desk.watch();
  const [again] = await sweeps();
  expect([again?.state, again?.wallet]).toEqual(["settled", SECOND]);
  expect(again?.minedHash).not.toBe(made.minedHash);
  expect(desk.chain.balances.get(address)).toBe(0n);
  expect((await desk.causeway("reconcile")).code).toBe(0);
});

it("retires no wallet over a sweep to it that the chain has lost", async () => {
  await vanishedSweep();
  await drainWallet(desk.database, WALLET, word);
  await expect(retire({ force: false })).rejects.toMatchObject({
    code: "WALLET_NOT_EMPTY",
    details: { openSweeps: 1 },
  });
  await registerSecond();
  await sweep(await sweeper([WALLET, SECOND]));
  expect(await retire({ force: false })).toMatchObject({ status: "retired" });
});

it("has those sweeps made again by their stored bytes, and strands no later deposit", async () => {
  const { address, made } = await vanishedSweep();
  const treasury = await sweeper();
  await sweep(treasury);
  const mined = desk.chain.blocks.at(-1)?.transactions.map(({ hash }) => hash);
  expect([mined, desk.chain.balances.get(address)]).toEqual([[made.minedHash], 0n]);

  desk.pay([address, 2n * TOKEN]);
  desk.chain.mine();
  await desk.watch();
  await desk.database.query(`UPDATE sweep_due SET due_at = now() WHERE due_at <> 'infinity'`);
  await sweep(treasury);
  expect(desk.chain.balances.get(address)).toBe(0n);
  const { code, text } = await desk.causeway("reconcile");
  expect({ code, text: code === 0 ? "" : text }).toEqual({ code: 0, text: "" });
});

it("sweeps on by a nonce that somebody else had used on the chain that was lost", async () => {
  const { address } = await desk.register("alice");
  desk.pay([address, 3n * TOKEN]);
  desk.chain.mine();
  await desk.watch();
  const kept = desk.chain.head;
  // By hand, with the address' key: nothing of ours was ever signed for nonce 0.
  const byHand = desk.chain.cosmosPayment(address, STRANGER, TOKEN);
  desk.chain.mine([byHand]);
  await desk.watch();
  await desk.causeway("ledger", "accept-outflow", byHand.hash, "--reason", "swept by hand");
  await sweep(await sweeper());
  const [made] = await sweeps();
  expect([made?.state, made?.gas?.nonce]).toEqual(["settled", 1n]);

  await desk.loseAbove(kept);
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  await desk.watch();
  expect(desk.chain.balances.get(address)).toBe(3n * TOKEN);
  const treasury = await sweeper();
  for (let round = 0; round < 2; round += 1) {
    await desk.database.query(`UPDATE sweep_due SET due_at = now() WHERE due_at <> 'infinity'`);
    await sweep(treasury);
  }
  expect(desk.chain.balances.get(address)).toBe(0n);
  expect((await sweeps()).map(({ state, gas }) => [state, gas?.nonce])).toEqual([
    // Its block is lost, and its bytes wait for coins.
    ["sent", 1n],
    ["settled", 0n],
  ]);
});

it("makes none again behind a kill switch that was thrown during the round", async () => {
  const { address, made } = await vanishedSweep();
  let looks = 0;
  const stopped: KillSwitchState = { ...SWITCH_UNTOUCHED, level: "stop-broadcast" };
  const treasury = await sweeper([WALLET], () => {
    looks += 1;
    return looks % 2 === 1 ? SWITCH_UNTOUCHED : stopped;
  });
  await treasury.round(desk.signal);
  expect(looks).toBe(2);
  desk.chain.mine();
  await desk.watch();
  expect(desk.chain.balances.get(address)).toBe(TOKEN);
  await desk.database.query(`UPDATE sweep_due SET due_at = now() WHERE due_at <> 'infinity'`);
  await sweep(await sweeper());
  const mined = desk.chain.blocks.at(-1)?.transactions.map(({ hash }) => hash);
  expect([mined, desk.chain.balances.get(address)]).toEqual([[made.minedHash], 0n]);
  expect((await desk.causeway("reconcile")).code).toBe(0);
});

it("goes on looking where it was looking when the chain lost what it had swept there", async () => {
  const { address } = await desk.register("alice");
  desk.pay([address, TOKEN]);
  desk.chain.mine();
  await desk.watch();
  const kept = desk.chain.head;
  await sweep(await sweeper());
  expect(desk.chain.balances.get(address)).toBe(0n);
  await desk.database.query(`UPDATE sweep_due SET due_at = now()`);
  const plain = rpc;
  let isOver = false;
  rpc = {
    ...plain,
    async batch(calls, options) {
      const answers = await plain.batch(calls, options);
      const isLook = calls.some(
        ({ method, params }) => method === "eth_getBalance" && params[0] === address,
      );
      if (!isLook || isOver) return answers;
      isOver = true;
      // It stands still behind its look.
      await desk.loseAbove(kept);
      expect((await desk.causeway("recover", "--apply")).code).toBe(0);
      await desk.watch();
      return answers;
    },
  };
  await (await sweeper()).round(desk.signal);
  rpc = plain;
  expect([isOver, desk.chain.balances.get(address)]).toEqual([true, TOKEN]);
  await sweep(await sweeper());
  expect(desk.chain.balances.get(address)).toBe(0n);
  const { code, text } = await desk.causeway("reconcile");
  expect({ code, text: code === 0 ? "" : text }).toEqual({ code: 0, text: "" });
});

it.each([
  ["was looked at while in doubt", true],
  ["came back between its rounds", false],
])("goes on at once on a chain that is still shorter, and %s", async (_what, looks) => {
  const treasury = await sweeper();
  const { address } = await desk.register("alice");
  desk.pay([address, TOKEN]);
  desk.chain.mine();
  await desk.watch();
  const kept = desk.chain.head;
  for (let block = 0; block < 20; block += 1) desk.chain.mine();
  await sweep(treasury);
  const former = desk.chain.head;
  await desk.loseAbove(kept);
  // While the chain is in doubt it does nothing.
  if (looks) await treasury.round(desk.signal);
  desk.chain.rollBack(kept);
  desk.chain.mine();
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  await desk.watch();
  await sweep(treasury);
  expect(desk.chain.head).toBeLessThan(former);
  expect(desk.chain.balances.get(address)).toBe(0n);
  expect((await desk.causeway("reconcile")).code).toBe(0);
});

it("has them made again however often the chain loses them", async () => {
  const { address, made } = await vanishedSweep();
  // A block of ours that stays: the watcher goes back no further.
  const other = await desk.register("bob");
  desk.pay([other.address, 1n]);
  desk.chain.mine();
  await desk.watch();
  const treasury = await sweeper();
  const lookNow = `UPDATE sweep_due SET due_at = now() WHERE due_at <> 'infinity'`;
  await sweep(treasury);
  await desk.database.query(lookNow);
  await treasury.round(desk.signal);
  expect(desk.chain.balances.get(address)).toBe(0n);
  // Only the block in which they were made again is lost: it is higher than the first one was.
  await desk.loseAbove(desk.chain.head - 1);
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  await desk.watch();
  expect(desk.chain.balances.get(address)).toBe(TOKEN);
  const afterLoss = await sweeper();
  await desk.database.query(lookNow);
  await sweep(afterLoss);
  const mined = desk.chain.blocks.at(-1)?.transactions.map(({ hash }) => hash);
  expect([mined, desk.chain.balances.get(address)]).toEqual([[made.minedHash], 0n]);
  expect((await desk.causeway("reconcile")).code).toBe(0);
});

it("has one made again before the next of its address, which waits for its nonce", async () => {
  const { address } = await desk.register("alice");
  desk.pay([address, TOKEN]);
  desk.chain.mine();
  await desk.watch();
  const kept = desk.chain.head;
  await sweep(await sweeper());
  const more = desk.chain.payment(STRANGER, address, 3n * TOKEN);
  desk.chain.mine([more]);
  desk.chain.mine();
  await desk.watch();
  const treasury = await sweeper();
  await treasury.round(desk.signal);
  await treasury.round(desk.signal);
  expect((await sweeps()).map(({ state }) => state)).toEqual(["settled", "sent"]);

  await desk.loseAbove(kept);
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  desk.chain.mine([more]);
  await desk.watch();
  const afterLoss = await sweeper();
  for (let round = 0; round < 3; round += 1) await sweep(afterLoss);
  expect((await sweeps()).map(({ state }) => state)).toEqual(["settled", "settled"]);
  expect(desk.chain.balances.get(address)).toBe(0n);
  expect((await desk.causeway("reconcile")).code).toBe(0);
});

it("shows a sweep of a block that is lost as one that is sent, until it is mined again", async () => {
  const { made } = await vanishedSweep();
  const reason = `block ${made.blockNumber}, in which it was mined, is lost: its bytes are sent again`;
  const [lost] = await sweeps();
  expect(lost).toMatchObject({ state: "sent", reason });
  expect([lost?.minedHash, lost?.blockNumber]).toEqual([undefined, undefined]);
  const { code, text } = await desk.causeway("sweeps", "list");
  expect([code, text]).toEqual([0, expect.stringMatching(`^${made.id}  sent  .*  ${reason}$`)]);
  desk.chain.mine();
  await sweep(await sweeper());
  const { head } = desk.chain;
  const again = { ...made, blockNumber: head };
  const [found] = await sweeps();
  expect({ ...found, ageMs: 0, attempts: [] }).toEqual({ ...again, ageMs: 0, attempts: [] });
  // Lost again, in the block in which it was mined the second time.
  await desk.loseAbove(head - 1);
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  expect((await sweeps()).map(({ state }) => state)).toEqual(["sent"]);
});

it("shows one that is not booked for long as that, whether or not a block has it", async () => {
  const { address } = await desk.register("alice");
  desk.pay([address, TOKEN]);
  desk.chain.mine();
  await desk.watch();
  const treasury = await sweeper();
  for (let round = 0; round < 2; round += 1) await treasury.round(desk.signal);
  desk.chain.mine();
  expect(desk.chain.balances.get(address)).toBe(0n);
  await desk.database.transaction(async (tx) => {
    await tx.query(`ALTER TABLE sweep DISABLE TRIGGER sweep_guard`);
    await tx.query(`UPDATE sweep SET changed_at = changed_at - interval '1 hour'`);
    await tx.query(`ALTER TABLE sweep ENABLE TRIGGER sweep_guard`);
  });
  const { text } = await desk.causeway("sweeps", "list");
  expect(text).toMatch(/ {2}not booked within 10 minutes, last signed at \d+ atoken per gas$/);
});

it("is not taken for one that moved nothing where blocks are booked that the chain has lost", async () => {
  const { address } = await desk.register("alice");
  desk.pay([address, TOKEN]);
  desk.chain.mine();
  await desk.watch();
  const kept = desk.chain.head;
  desk.chain.unmined.add(WALLET);
  const treasury = await sweeper();
  await treasury.round(desk.signal);
  await treasury.round(desk.signal);
  desk.chain.mine();
  desk.chain.mine();
  await desk.watch();
  const lost = desk.chain.head;
  desk.chain.rollBack(kept);
  desk.chain.unmined.clear();
  // One that has just started: the watcher has not looked yet.
  const afterLoss = await sweeper();
  await afterLoss.round(desk.signal);
  desk.chain.mine();
  expect(desk.chain.balances.get(address)).toBe(0n);
  await afterLoss.round(desk.signal);
  while (desk.chain.head <= lost) desk.chain.mine();
  await (await sweeper()).round(desk.signal);
  await desk.watch();
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  await desk.watch();
  expect((await sweeps()).map(({ state }) => state)).toEqual(["settled"]);
  expect((await desk.causeway("reconcile")).code).toBe(0);
});
