/** What freezes a wallet while an operator's release looks at the chain: nobody has looked at that. */
import { beforeEach, expect, it } from "@jest/globals";
import type { Address } from "../../../../chain/address.js";
import { parseHash32 } from "../../../../chain/hex.js";
import { acknowledge } from "../../../../ledger/withdrawals/foreign-transactions.js";
import {
  releaseWallet,
  releaseWithdrawal,
} from "../../../../ledger/withdrawals/release/release.js";
import type { WalletChain } from "../../../../ledger/withdrawals/release/outcome.js";
import { resumeUnpaid } from "../../../../ledger/withdrawals/operator-decisions.js";
import { freezeSigning, readFreeze } from "../../../../ledger/requests/signing-freeze.js";
import { stepWithdrawals } from "../../../../ledger/requests/withdrawal-steps.js";
import { freezeWithdrawals } from "../../../../ledger/withdrawals/slot-outcomes.js";
import type { SqlDatabase } from "../../../../runtime/sql/sql.js";
import { standing } from "../../../helpers/services/ledger.js";
import { until } from "../../../helpers/until.js";
import {
  freshAddress,
  House,
  houseForEachTest,
  TOKEN,
  WALLET,
} from "../../../helpers/exchange/house.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

beforeEach(async () => {
  await house.lane().runRound(house.signal);
});

const nothing = async (): Promise<unknown> => undefined;

/** A chain in whose look at the wallet, or at a payment, something else happens. */
function chainWith(happens = nothing, happensAtPayment = nothing): WalletChain {
  return {
    async headHeight() {
      await happens();
      return house.chain.head;
    },
    nonceAt: async () => house.chain.nonces.get(WALLET) ?? 0n,
    queuedNonces: async () => [],
    async receipts(hashes) {
      await happensAtPayment();
      return hashes.map(() => undefined);
    },
    transactions: async () => [],
  };
}

function contextWith(chain: WalletChain, database: SqlDatabase = house.ledger.owner) {
  const chainOf = (_wallet: Address) => chain;
  return { database, wallet: WALLET, chainOf, paymentOf: async () => undefined };
}

function release(happens = nothing, happensAtPayment = nothing) {
  return releaseWallet(contextWith(chainWith(happens, happensAtPayment)), {});
}

/** The same, but only the first time. */
function once(happens: () => Promise<unknown>): () => Promise<unknown> {
  let isOver = false;
  return async () => {
    if (isOver) return;
    isOver = true;
    await happens();
  };
}

const freeze = (reason: string) => freezeSigning(house.ledger.owner, WALLET, reason);

it("stays frozen for a further cause, which is told", async () => {
  await freeze("the first cause");
  const report = await release(() => freeze("the key was seen elsewhere"));
  expect(report.steps).toEqual([]);
  expect(report.obstacles).toEqual([
    {
      obstacle: "frozen-meanwhile",
      wallet: WALLET,
      reason: "the first cause; also: the key was seen elsewhere",
    },
  ]);
  expect(await readFreeze(house.database, WALLET)).toMatchObject({ frozen: true });
  // Whoever types it again has been told of both.
  expect((await release()).steps).toEqual([{ step: "signing-released" }]);
  expect(await readFreeze(house.database, WALLET)).toMatchObject({ frozen: false });
});

it("that was not frozen before stays frozen", async () => {
  const report = await release(() => freeze("an operator froze it"));
  expect([report.steps, report.obstacles.map(({ obstacle }) => obstacle)]).toEqual([
    [],
    ["frozen-meanwhile"],
  ]);
  expect(await readFreeze(house.database, WALLET)).toMatchObject({ frozen: true });
});

it("stays frozen where it was released meanwhile, and frozen again in the same words", async () => {
  await freeze("an operator froze it");
  const again = once(async () => {
    expect((await release()).steps).toEqual([{ step: "signing-released" }]);
    await freeze("an operator froze it");
  });
  const report = await release(again);
  expect([report.steps, report.obstacles.map(({ obstacle }) => obstacle)]).toEqual([
    [],
    ["frozen-meanwhile"],
  ]);
  expect(await readFreeze(house.database, WALLET)).toMatchObject({ frozen: true });
});

it("is released where nothing else came, and a release of nothing says nothing", async () => {
  expect(await release()).toMatchObject({ steps: [], obstacles: [] });
  await freeze("the first cause");
  expect(await release()).toMatchObject({ steps: [{ step: "signing-released" }], obstacles: [] });
});

it("leaves frozen what was let go on and froze again for another cause", async () => {
  const { id } = await house.accept();
  await house.database.query(`UPDATE hot_wallet SET lease_owner = NULL`);
  await house.lane().runRound(house.signal);
  expect((await house.read(id)).status).toBe("broadcast");
  const { owner } = house.ledger;
  await freezeWithdrawals(owner, [{ id, reason: "the first cause" }]);
  const freezeAgain = once(async () => {
    // Another operator's release, and what the worker finds then.
    expect((await release()).steps).toEqual([{ step: "slot-resumed", id, nonce: 0n }]);
    await freezeWithdrawals(owner, [{ id, reason: "the two nodes disagree" }]);
  });
  const report = await release(nothing, freezeAgain);
  expect([report.steps, report.obstacles]).toEqual([[], [{ obstacle: "moved-meanwhile", id }]]);
  expect(await house.read(id)).toMatchObject({
    status: "frozen",
    reason: "the two nodes disagree",
  });
  expect((await release()).steps).toEqual([{ step: "slot-resumed", id, nonce: 0n }]);
});

it("lets nothing be paid whose deadline passed while it was frozen, also in a round that runs", async () => {
  const to = freshAddress();
  house.chain.unmined.add(to);
  const fields = { destination: to, destinationText: to, expiresAtMs: Date.now() + 3_600_000 };
  const { id } = await house.accept(fields);
  await house.database.query(`UPDATE hot_wallet SET lease_owner = NULL`);
  const lane = house.lane();
  await lane.runRound(house.signal);
  const { owner } = house.ledger;
  await freezeWithdrawals(owner, [{ id, reason: "the first cause" }]);
  await owner.transaction(async (tx) => {
    await tx.query(`SET LOCAL session_replication_role = replica`);
    await tx.query(`UPDATE withdrawal SET expires_at = now() WHERE id = $1`, [id]);
  });
  expect((await release()).steps).toEqual([{ step: "slot-resumed", id, nonce: 0n }]);
  // A round looks for deadlines once, at its beginning, and signs and sends behind that.
  expect(await house.read(id)).toMatchObject({
    status: "cancelling",
    reason: "its deadline passed before it was paid",
  });
  await house.pass(lane, { rounds: 2, stepMs: 2_000 });
  expect((await house.read(id)).status).toBe("cancelled");
  expect(house.chain.balances.get(to) ?? 0n).toBe(0n);
});

it("pays nothing for a word about a cause that another one has taken the place of", async () => {
  const { id } = await house.accept();
  const { owner } = house.ledger;
  await freezeWithdrawals(owner, [{ id, reason: "the first cause" }]);
  const freezeAgain = once(async () => {
    // Another operator's word, and what was found then.
    expect(await resumeUnpaid(owner, { id, reason: "the first cause" })).toBe(true);
    await freezeWithdrawals(owner, [{ id, reason: "a payment equals it" }]);
  });
  const database: SqlDatabase = {
    ...owner,
    query: (text, values) => owner.query(text, values),
    async transaction(work) {
      await freezeAgain();
      return owner.transaction(work);
    },
  };
  const say = (given?: SqlDatabase) =>
    releaseWithdrawal(contextWith(chainWith(), given), id, { decision: "not-paid" });
  const report = await say(database);
  expect([report.steps, report.obstacles]).toEqual([
    [],
    [{ obstacle: "undecided", id, reason: "a payment equals it" }],
  ]);
  expect(await house.read(id)).toMatchObject({ status: "frozen", reason: "a payment equals it" });
  // Whoever types it again has been told of it.
  expect((await say()).steps).toEqual([{ step: "unpaid-resumed", id }]);
});

it("freezes again what is let go on while a transaction that may have paid it is acknowledged", async () => {
  const { id, to } = await house.acceptTo();
  const { owner } = house.ledger;
  await freezeWithdrawals(owner, [{ id, reason: "the first cause" }]);
  const hash = parseHash32(`0x${"0e".repeat(32)}`);
  const paid = [{ destination: to, amountUnits: TOKEN, contract: undefined }];
  const word = { hashes: [hash], by: "ann", reason: "paid by hand" };
  let acknowledged: ReturnType<typeof acknowledge> | undefined;
  await standing(owner, async (tx) => {
    await stepWithdrawals(tx, "accepted", [{ id }], ["frozen"]);
    acknowledged = acknowledge(owner, WALLET, word, [{ hash, paid }]);
    // Asked outside: a transaction is shown for its whole time the sessions that it saw first.
    const waiting = `SELECT 1 FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    await until(async () => (await owner.query(waiting)).length > 0, {
      timeoutMs: 10_000,
      what: "the acknowledgement waits for the release",
    });
  });
  expect([...((await acknowledged) ?? [])]).toEqual([id]);
  expect(await house.read(id)).toMatchObject({
    status: "frozen",
    reason: expect.stringContaining(hash),
  });
});
