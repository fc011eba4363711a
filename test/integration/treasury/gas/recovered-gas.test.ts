/**
 * Gas for a sweep that a ledger paid and forgot: its backup knows that it asked for it, and no more. And
 * gas that a chain mines again with another outcome.
 */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import type { Address } from "../../../../chain/address.js";
import { present } from "../../../../chain/errors.js";
import { keccak256Hex } from "../../../../chain/hashes.js";
import { type Hash32, parseHexBytes } from "../../../../chain/hex.js";
import { ADJUSTMENT, NATIVE_ASSET, SUSPENSE } from "../../../../ledger/journal/accounts.js";
import { postJournal } from "../../../../ledger/journal/journal.js";
import {
  depositIdsOfTransaction,
  entriesOfDeposit,
} from "../../../../ledger/deposits/deposit-evidence.js";
import { assertInSuspense } from "../../../../ledger/deposits/suspense.js";
import { hashPolicy, PERMISSIVE_POLICY } from "../../../../ledger/policy/policy.js";
import { planRewind } from "../../../../ledger/recovery/older-chain.js";
import { applyRewind } from "../../../../ledger/recovery/rewind.js";
import { keysOfGas, openMove } from "../../../../ledger/treasury/moves.js";
import { cancelWithdrawal } from "../../../../ledger/withdrawals/cancellation.js";
import { readFreeze } from "../../../../ledger/requests/signing-freeze.js";
import { toWithdrawalId, type WithdrawalId } from "../../../../ledger/requests/withdrawal-id.js";
import { standing } from "../../../helpers/services/ledger.js";
import { until } from "../../../helpers/until.js";
import { Desk, WALLET } from "../../recovery/desk.js";
import { ANY_SWEEP } from "../treasury-bench.js";

const GAS_ATOKEN = 5_000n;

const policy = hashPolicy({
  ...PERMISSIVE_POLICY,
  treasury: { topUpMaxAtoken: 10n ** 15n, assets: new Map([["TOKEN", ANY_SWEEP]]) },
});

const word = ["--reason", "it was that gas", "--operator", "ann"];

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

/** A ledger back from its backup, recovered: the chain has the gas that it only asked for. */
async function recovered(): Promise<{ readonly id: WithdrawalId; readonly hash: Hash32 }> {
  const { address } = await desk.register("bob");
  await askForGas(address);
  const backup = await desk.backup();
  // The same payment on the chain, whoever asked the ledger of then.
  await desk.request({ key: "x", customer: "alice", to: address, amountAtoken: GAS_ATOKEN });
  await desk.work(3);
  await desk.watch();
  const hash = desk.ownHashes().at(-1);
  await desk.useDatabase(backup);
  await desk.watch();
  const { code, text } = await desk.causeway("recover", "--apply");
  expect({ code, text: code === 0 ? "" : text }).toEqual({ code: 0, text: "" });
  const [row] = await desk.database.query<{ id: string; status: string }>(
    `SELECT w.id, w.status FROM treasury_move m JOIN withdrawal w ON w.id = m.withdrawal_id`,
  );
  expect(row?.status).toBe("frozen");
  if (hash === undefined) throw new Error("nothing was paid");
  return { id: toWithdrawalId(row?.id ?? ""), hash };
}

async function askForGas(address: Address): Promise<void> {
  const [sweep] = await desk.database.query<{ id: string }>(
    `INSERT INTO sweep (address, asset, wallet, amount_units, gas_limit, state)
     VALUES ($1, 'TOKEN', $2, 1, 21000, 'needs-gas') RETURNING id::text`,
    [address, WALLET],
  );
  const refusal = await openMove(
    desk.workerDatabase,
    {
      kind: "top-up",
      sweepId: Number(sweep?.id),
      destination: address,
      amountUnits: GAS_ATOKEN,
      afterId: 0,
    },
    { minimumAtoken: 0n, policy, isStopped: false },
  );
  expect(refusal).toBeUndefined();
}

async function expectArrived(): Promise<void> {
  await desk.endMoves();
  expect(await desk.database.query(`SELECT state FROM treasury_move`)).toEqual([
    { state: "arrived" },
  ]);
  const left = await desk.database.query(
    `SELECT account, sum(units)::text AS units FROM (
       SELECT debit AS account, amount_units AS units FROM posting
       UNION ALL SELECT credit, -amount_units FROM posting) AS side
      WHERE account IN ('liability:suspense', 'asset:in_transit') OR account LIKE '%treasury%'
      GROUP BY account HAVING sum(units) <> 0`,
  );
  expect(left).toEqual([]);
  const { code, text } = await desk.causeway("reconcile");
  expect({ code, text: code === 0 ? "" : text }).toEqual({ code: 0, text: "" });
}

it("ends when a person says so after the watcher had it in suspense", async () => {
  const { id, hash } = await recovered();
  await desk.watch();
  await desk.endMoves();
  expect(await desk.database.query(`SELECT state FROM treasury_move`)).toEqual([{ state: "open" }]);
  await desk.causeway("ledger", "link-payment", hash, "--withdrawal", id, ...word);
  await expectArrived();
  expect(await desk.endMoves()).toBe(0);
  // The deposit is in suspense by its status, and what took it out stands in its evidence.
  const {
    ids: [late = ""],
  } = await depositIdsOfTransaction(desk.database, hash);
  const told = await entriesOfDeposit(desk.database, late, await keysOfGas(desk.database, late));
  expect(told.map(({ kind }) => kind)).toEqual(["deposit.suspense", "treasury.late"]);
});

it("ends when a person says so before the watcher comes to it", async () => {
  const { id, hash } = await recovered();
  await desk.causeway("ledger", "link-payment", hash, "--withdrawal", id, ...word);
  await desk.watch();
  await expectArrived();
});

it("stays open where what was in suspense for it has been booked elsewhere", async () => {
  const { id, hash } = await recovered();
  await desk.watch();
  const sides = ["--debit", "liability:suspense", "--credit", "equity:adjustment"];
  const amount = ["--amount-atoken", `${GAS_ATOKEN}`];
  await desk.causeway("ledger", "adjust", "--key", "elsewhere", ...sides, ...amount, ...word);
  await desk.causeway("ledger", "link-payment", hash, "--withdrawal", id, ...word);
  await desk.endMoves();
  expect(await desk.database.query(`SELECT state FROM treasury_move`)).toEqual([{ state: "open" }]);

  // It is named until a person has given it back, and holds up nothing that was asked for later.
  const named = `gas of ${GAS_ATOKEN} atoken`;
  expect((await desk.causeway("ledger", "open")).text).toContain(named);
  const { address } = await desk.register("carol");
  await askForGas(address);
  const [other] = await desk.database.query<{ id: string }>(
    `SELECT withdrawal_id AS id FROM treasury_move WHERE state = 'open' AND destination = $1`,
    [address],
  );
  await cancelWithdrawal(desk.database, toWithdrawalId(other?.id ?? ""), "it is not needed");
  expect([await desk.endMoves({ limit: 1 }), await desk.endMoves({ limit: 1 })]).toEqual([1, 0]);
  const back = ["--debit", "equity:adjustment", "--credit", "liability:suspense"];
  await desk.causeway("ledger", "adjust", "--key", "back", ...back, ...amount, ...word);
  expect(await desk.endMoves({ limit: 1 })).toBe(1);
  for (const account of ["asset:in_transit", "liability:suspense"]) {
    expect([account, await unitsOf(account)]).toEqual([account, "0"]);
  }
  expect((await desk.causeway("reconcile")).code).toBe(0);
  expect((await desk.causeway("ledger", "open")).text).toBe("Nothing waits for a person.");
});

it("is not linked once a customer was given it: its request ends unpaid, and nothing is in transit", async () => {
  const { id, hash } = await recovered();
  await desk.watch();
  const [deposit] = await desk.database.query<{ id: string }>(
    `SELECT id FROM deposit WHERE status = 'suspense'`,
  );
  await desk.causeway("ledger", "assign-deposit", `${deposit?.id}`, "--customer", "bob", ...word);
  const link = ["ledger", "link-payment", hash, "--withdrawal", id, ...word];
  const said = "liability:customer:bob --credit expense:write_off";
  await expect(desk.causeway(...link)).rejects.toMatchObject({
    code: "INVALID_DECISION",
    message: expect.stringContaining(said),
  });
  // As it says.
  await desk.causeway("withdrawals", "cancel", id, ...word.slice(0, 2));
  await desk.causeway("ledger", "pay-withdrawal", id, ...word);
  const sides = ["--debit", "liability:customer:bob", "--credit", "expense:write_off"];
  const amount = ["--amount-atoken", `${GAS_ATOKEN}`];
  await desk.causeway("ledger", "adjust", "--key", "taken-back", ...sides, ...amount, ...word);
  await desk.causeway("ledger", "write-off-payment", hash, ...word);
  expect(await desk.endMoves()).toBe(1);
  for (const account of ["asset:in_transit", "liability:suspense", "expense:write_off"]) {
    expect([account, await unitsOf(account)]).toEqual([account, "0"]);
  }
  expect(await desk.availableAtoken("bob")).toBe(0n);
  expect((await desk.causeway("reconcile")).code).toBe(0);
  expect((await desk.causeway("ledger", "open")).text).toBe("Nothing waits for a person.");
});

it("waits for who books what was in suspense for it, and then takes nothing", async () => {
  const { id, hash } = await recovered();
  await desk.watch();
  await desk.causeway("ledger", "link-payment", hash, "--withdrawal", id, ...word);
  let ending: Promise<number> | undefined;
  let hasEnded = false;
  await standing(desk.database, async (tx) => {
    await assertInSuspense(tx, NATIVE_ASSET, GAS_ATOKEN);
    const sides = { debit: SUSPENSE, credit: ADJUSTMENT };
    await postJournal(tx, {
      kind: "ledger.adjust",
      idemKey: "elsewhere",
      effectiveHeight: null,
      postings: [{ asset: NATIVE_ASSET, ...sides, amountUnits: GAS_ATOKEN }],
    });
    ending = desk.endMoves().finally(() => (hasEnded = true));
    const waiting = `SELECT 1 FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
                      WHERE NOT l.granted AND a.datname = current_database()`;
    await until(async () => hasEnded || (await desk.database.query(waiting)).length > 0, {
      timeoutMs: 20_000,
      what: "the treasury waits for the decision",
    });
  });
  expect(await ending).toBe(0);
  expect([await unitsOf("liability:suspense"), await unitsOf("asset:in_transit")]).toEqual([
    "0",
    `${GAS_ATOKEN}`,
  ]);
});

it("is taken back with its block where the chain came back without it, and books once again", async () => {
  const { id, hash } = await recovered();
  await desk.watch();
  await desk.causeway("ledger", "link-payment", hash, "--withdrawal", id, ...word);
  await expectArrived();
  for (let loss = 0; loss < 2; loss += 1) {
    await loseBlockOf(hash);
    expect(await unitsOf("liability:suspense")).toBe("0");
    desk.chain.submit(rawOf(hash));
    desk.chain.mine();
    await desk.watch();
    await expectArrived();
  }
});

it("is taken back, too, where it ended while a person went back", async () => {
  const { id, hash } = await recovered();
  await desk.watch();
  await desk.causeway("ledger", "link-payment", hash, "--withdrawal", id, ...word);
  await desk.loseAbove(heightOf(hash) - 1);
  const { chain } = desk;
  const plan = await planRewind(desk.database, {
    headHeight: () => Promise.resolve(chain.head),
    blockHash: (height) => Promise.resolve(chain.blocks[height]?.hash),
    areMined: (hashes) => Promise.resolve(hashes.map(() => false)),
    nextNonce: () => Promise.resolve(0n),
    coinsAt: () => Promise.resolve(0n),
    unitsAt: () => Promise.resolve([]),
  });
  expect(await desk.endMoves()).toBe(1);
  const going = applyRewind(desk.database, present(plan, "a plan"), "ann");
  await expect(going).rejects.toMatchObject({ code: "RECOVERY" });
  expect((await desk.causeway("recover", "--apply")).code).toBe(1);
  await desk.watch();
  desk.chain.submit(rawOf(hash));
  desk.chain.mine();
  await desk.watch();
  await expectArrived();
});

it("is nobody's deposit any more once it has ended", async () => {
  const { id, hash } = await recovered();
  await desk.watch();
  await desk.causeway("ledger", "link-payment", hash, "--withdrawal", id, ...word);
  await expectArrived();
  const [deposit] = await desk.database.query<{ id: string }>(
    `SELECT id FROM deposit WHERE tx_hash = $1 AND status = 'suspense'`,
    [hash],
  );
  const given = desk.causeway(
    "ledger",
    "assign-deposit",
    `${deposit?.id}`,
    "--customer",
    "bob",
    ...word,
  );
  await expect(given).rejects.toMatchObject({ code: "INVALID_DECISION" });
  await expectArrived();
});

it("is given to nobody with the other deposits of an address whose customer a person names", async () => {
  const { address } = await desk.register("bob");
  desk.pay([address, 7n]);
  await desk.request({ key: "x", customer: "alice", to: address, amountAtoken: GAS_ATOKEN });
  await desk.work(3);
  await desk.watch();
  await desk.useEmptyDatabase();
  await desk.watch();
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  await desk.watch();
  const whose = ["--customer", "bob", "--with-deposits"];
  await desk.causeway("ledger", "assign-address", address, ...whose, ...word);
  expect(await desk.availableAtoken("bob")).toBe(7n);
  const { text } = await desk.causeway("ledger", "open");
  expect(text).toContain(`assign-deposit (deposits list --address ${address})`);
  // It was no gas: another customer had withdrawn to this address.
  const [deposit] = await desk.database.query<{ id: string }>(
    `SELECT id FROM deposit WHERE address = $1 AND status = 'suspense'`,
    [address],
  );
  await desk.causeway("ledger", "assign-deposit", `${deposit?.id}`, "--customer", "bob", ...word);
  expect(await desk.availableAtoken("bob")).toBe(7n + GAS_ATOKEN);
  expect((await desk.causeway("reconcile")).code).toBe(0);
});

describe("gas on a chain that came back without its block", () => {
  /** Gas for bob's address is asked for; `cancelled` has a transfer of nothing mined in its place. */
  async function pay({ isCancelled }: { readonly isCancelled: boolean }) {
    const { address } = await desk.register("bob");
    await desk.watch();
    const kept = desk.chain.head;
    desk.files.policy = policy;
    if (isCancelled) desk.chain.unmined.add(address);
    await askForGas(address);
    const [row] = await desk.database.query<{ id: string }>(
      `SELECT withdrawal_id AS id FROM treasury_move`,
    );
    const id = toWithdrawalId(row?.id ?? "");
    await desk.lane().runRound(desk.signal);
    const payment = desk.chain.arrived.at(-1) ?? "";
    if (isCancelled) await cancelWithdrawal(desk.database, id, "it is not needed");
    await desk.work(4);
    await desk.watch();
    await desk.endMoves();
    const { status } = await desk.read(id);
    expect(status).toBe(isCancelled ? "cancelled" : "settled");
    return { address, kept, payment };
  }

  /** Nothing is in transit, missing or left to a person. */
  async function expectEven(): Promise<void> {
    for (const account of ["asset:in_transit", "asset:break", "liability:suspense"]) {
      expect([account, await unitsOf(account)]).toEqual([account, "0"]);
    }
    const { code, text } = await desk.causeway("reconcile");
    expect({ code, text: code === 0 ? "" : text }).toEqual({ code: 0, text: "" });
    expect((await desk.causeway("ledger", "open")).text).toBe("Nothing waits for a person.");
    expect((await readFreeze(desk.database, WALLET)).reason).not.toContain("ended as");
  }

  it("is even where it is paid in the place of its cancellation", async () => {
    const { address, kept, payment } = await pay({ isCancelled: true });
    const lost = desk.chain.head;
    desk.chain.rollBack(kept);
    desk.chain.unmined.clear();
    desk.chain.submit(payment);
    while (desk.chain.head <= lost) desk.chain.mine();
    await desk.watch();
    await desk.causeway("recover", "--apply");
    await desk.watch();
    expect(desk.paidAtoken(address)).toBe(GAS_ATOKEN);
    await expectEven();
  });

  it("is on its way once more for a comparison before the watcher meets it again", async () => {
    const { address, kept } = await pay({ isCancelled: false });
    await desk.loseAbove(kept);
    expect((await desk.causeway("recover", "--apply")).code).toBe(0);
    expect([await unitsOf("asset:in_transit"), await desk.breaks()]).toEqual([`${GAS_ATOKEN}`, ""]);
    desk.chain.mine();
    await desk.watch();
    expect(desk.paidAtoken(address)).toBe(GAS_ATOKEN);
    await expectEven();
  });

  it("is even where it fails that had arrived", async () => {
    const { address, kept } = await pay({ isCancelled: false });
    expect(desk.paidAtoken(address)).toBe(GAS_ATOKEN);
    desk.chain.revertingOnChain.add(address);
    await desk.loseAbove(kept);
    expect((await desk.causeway("recover", "--apply")).code).toBe(0);
    desk.chain.mine();
    await desk.watch();
    expect(desk.paidAtoken(address)).toBe(0n);
    await expectEven();
  });

  it.each([
    { when: "before", isBefore: true },
    { when: "after", isBefore: false },
  ])(
    "is even where it had arrived unsettled, and is cancelled $when the watcher goes back",
    async ({ isBefore }) => {
      const { address } = await desk.register("bob");
      await desk.watch();
      const kept = desk.chain.head;
      desk.files.policy = policy;
      await askForGas(address);
      await desk.lane().runRound(desk.signal);
      desk.chain.mine();
      await desk.watch();
      expect(desk.paidAtoken(address)).toBe(GAS_ATOKEN);
      const [row] = await desk.database.query<{ id: string; state: string }>(
        `SELECT withdrawal_id AS id, state FROM treasury_move`,
      );
      const id = toWithdrawalId(row?.id ?? "");
      expect([row?.state, (await desk.read(id)).status]).toEqual(["arrived", "broadcast"]);

      const lost = desk.chain.head;
      desk.chain.unmined.add(address);
      desk.chain.rollBack(kept);
      const cancel = async () => {
        await cancelWithdrawal(desk.database, id, "it is not needed");
        await desk.work(6);
        expect((await desk.read(id)).status).toBe("cancelled");
      };
      if (isBefore) await cancel();
      while (desk.chain.head <= lost) desk.chain.mine();
      await desk.watch();
      const { code, text } = await desk.causeway("recover", "--apply");
      expect({ code, text: code === 0 ? "" : text }).toEqual({ code: 0, text: "" });
      await desk.watch();
      if (!isBefore) await cancel();
      await desk.watch();
      await desk.endMoves();
      expect(desk.paidAtoken(address)).toBe(0n);
      await expectEven();
    },
  );
});

/** The chain comes back without a transaction's block, and the watcher goes back on it. */
async function loseBlockOf(hash: Hash32): Promise<void> {
  await desk.loseAbove(heightOf(hash) - 1);
  const { code, text } = await desk.causeway("recover", "--apply");
  // Who signed it has its bytes: the ledger of then.
  expect([code, text]).toEqual([1, expect.stringContaining(`NOT SENT: ${hash}`)]);
  await desk.watch();
}

function heightOf(hash: Hash32): number {
  return desk.chain.blocks.findIndex(({ transactions }) =>
    transactions.some((one) => one.hash === hash),
  );
}

/** Debits less credits of an account. */
async function unitsOf(account: string): Promise<string> {
  const [row] = await desk.database.query<{ units: string }>(
    `SELECT coalesce(sum(CASE WHEN debit = $1 THEN amount_units ELSE -amount_units END), 0)::text
              AS units
       FROM posting WHERE $1 IN (debit, credit)`,
    [account],
  );
  return row?.units ?? "";
}

function rawOf(hash: Hash32): string {
  const raw = desk.chain.arrived.find((one) => keccak256Hex(parseHexBytes(one)) === hash);
  if (raw === undefined) throw new Error("nobody sent it");
  return raw;
}
