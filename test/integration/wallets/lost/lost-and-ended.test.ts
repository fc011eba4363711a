/** Requests that were to end unpaid on a ledger that has lost what was paid for them. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { keccak256 } from "../../../../chain/hashes.js";
import { privateKeyToAddress } from "../../../../chain/signing/account-key.js";
import { freezeWithdrawals } from "../../../../ledger/withdrawals/slot-outcomes.js";
import { cancelWithdrawal } from "../../../../ledger/withdrawals/cancellation.js";
import type { WithdrawalId } from "../../../../ledger/requests/withdrawal-id.js";
import { lostNonces } from "../../../../ledger/requests/signing-freeze.js";
import { activatePolicy } from "../../../../ledger/policy/policy-store.js";
import type { Sql } from "../../../../runtime/sql/sql.js";
import { ChainLook } from "../../../../withdrawal-worker/lane/chain-look.js";
import { createLaneLedger } from "../../../../withdrawal-worker/lane/lane-ledger.js";
import { ShownNonces } from "../../../../withdrawal-worker/lane/shown-nonces.js";
import { FAKE_CHAIN_ID } from "../../../helpers/chains/fake-chain.js";
import { createPatientClient, createPatientNode } from "../../../helpers/exchange/patient-node.js";
import { silentLog } from "../../../helpers/services/ledger.js";
import { policyOf } from "../../policy/terms.js";
import { Desk, destination, KEY, TOKEN, WALLET } from "../../recovery/desk.js";

const SECOND_KEY = keccak256(Buffer.from("second hot wallet of the lost endings"));
const SECOND = privateKeyToAddress(SECOND_KEY);

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

const wish = { key: "w", customer: "alice", to: destination(1), amountAtoken: TOKEN };

/** A request is paid, and a standby takes over that knows the request and no payment of it. */
async function losePayment(pay: () => Promise<void>): Promise<WithdrawalId> {
  const { id } = await desk.request(wish);
  const standby = await desk.backup();
  await pay();
  expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
  await desk.useDatabase(standby);
  expect(await desk.read(id)).toMatchObject({ status: "accepted" });
  return id;
}

/** Nobody waits for it here: of what was asked for only an owner can change the terms. */
async function passDeadline(id: WithdrawalId): Promise<void> {
  await desk.database.transaction(async (tx) => {
    await tx.query(`SET LOCAL session_replication_role = replica`);
    await tx.query(`UPDATE withdrawal SET expires_at = now() WHERE id = $1`, [id]);
  });
}

/** The person who finds the payment links it with the request. */
async function linkPayment(id: WithdrawalId, lanes = () => [desk.lane()]): Promise<void> {
  const release = ["withdrawals", "release", "--accept-foreign", "--reason", "lost commits"];
  await desk.watch();
  await desk.causeway(...release);
  const [payment = ""] = desk.chain.blocks.flatMap(({ transactions }) =>
    transactions.flatMap(({ hash, signed }) => (signed?.tx.to === destination(1) ? [hash] : [])),
  );
  const paid = await desk.causeway("withdrawals", "release", id, "--paid-by", payment);
  expect(paid).toMatchObject({ code: 0 });
  await desk.work(4, lanes());
  await desk.watch();
  expect((await desk.read(id)).status).toBe("settled");
  expect(await desk.availableAtoken("alice")).toBe(9n * TOKEN);
  expect(await desk.breaks()).toBe("");
}

it("does not end at its deadline what the chain may have paid behind the ledger's back", async () => {
  const id = await losePayment(() => desk.work(1));
  await passDeadline(id);
  await desk.work(2);
  expect((await desk.read(id)).status).not.toBe("cancelled");
  expect(await desk.availableAtoken("alice")).toBe(9n * TOKEN);
  await linkPayment(id);
});

it("takes back nothing that the chain may have paid behind the ledger's back", async () => {
  const id = await losePayment(() => desk.work(1));
  await desk.lane().runRound(desk.signal);
  await cancelWithdrawal(desk.workerDatabase, id, "the client changed its mind");
  expect((await desk.read(id)).status).toBe("frozen");
  expect(await desk.availableAtoken("alice")).toBe(9n * TOKEN);
  await linkPayment(id);
});

/** The chain's view of a worker that has just begun, whose lanes have had no round. */
function beginning(url = desk.chain.url) {
  const shown = new ShownNonces();
  const rpc = createPatientClient(url);
  const { genesisHash } = desk.chain;
  const node = createPatientNode(rpc, { chainId: FAKE_CHAIN_ID, genesisHash });
  const ledger = createLaneLedger(desk.workerDatabase, shown);
  const context = { ledger, node, log: silentLog };
  return { shown, rpc, look: new ChainLook({ context, shown, signal: desk.signal }) };
}

it("takes back nothing of the kind where no lane of the process has looked yet", async () => {
  const id = await losePayment(() => desk.work(1));
  const { look, shown, rpc } = beginning();
  await look.beforeEnding();
  await cancelWithdrawal(desk.workerDatabase, id, "the client changed its mind", {
    shown: shown.all,
  });
  expect((await desk.read(id)).status).toBe("frozen");
  expect(await desk.availableAtoken("alice")).toBe(9n * TOKEN);
  await linkPayment(id);
  rpc.close();
});

it("takes nothing back while the node was never asked, and goes on by what it saw once it was", async () => {
  const closed = beginning("http://127.0.0.1:1");
  await expect(closed.look.beforeEnding()).rejects.toMatchObject({
    status: 503,
    code: "UNAVAILABLE",
  });
  closed.shown.chainAsked();
  await closed.look.beforeEnding();
  closed.rpc.close();
  const asked = beginning();
  expect(asked.shown.wasChainAsked).toBe(false);
  await asked.look.first({ signal: desk.signal });
  expect(asked.shown.wasChainAsked).toBe(true);
  asked.rpc.close();
});

/** A person says of what was taken back that it was not paid, and knows nothing of what the ledger lost. */
async function sayUnpaid(id: WithdrawalId): Promise<void> {
  const said = await desk.causeway("withdrawals", "release", id, "--not-paid");
  expect(said).toMatchObject({ code: 1, text: expect.stringContaining("may be paid") });
  expect((await desk.read(id)).status).toBe("frozen");
  expect(await desk.availableAtoken("alice")).toBe(9n * TOKEN);
}

it("gives no hold back on a word about what nobody can have looked at yet", async () => {
  const id = await losePayment(() => desk.work(1));
  await desk.lane().runRound(desk.signal);
  await cancelWithdrawal(desk.workerDatabase, id, "the client changed its mind");
  await sayUnpaid(id);
  await linkPayment(id);
});

it("gives no hold back on a word that was lost with what was paid by it, and is said again", async () => {
  const { id } = await desk.request(wish);
  await freezeWithdrawals(desk.database, [{ id, reason: "somebody has to look" }]);
  const standby = await desk.backup();
  const said = await desk.causeway("withdrawals", "release", id, "--not-paid");
  expect(said.code).toBe(0);
  await desk.work(1);
  expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
  await desk.useDatabase(standby);
  // Frozen it is, so that nobody looks before the wish is kept.
  await cancelWithdrawal(desk.workerDatabase, id, "the client changed its mind");
  await sayUnpaid(id);
  await linkPayment(id);
});

/** Typed before any lane has looked. */
const CANCEL = ["--reason", "the client changed its mind"];

it("takes back nothing of the kind at the command line", async () => {
  const id = await losePayment(() => desk.work(1));
  expect((await desk.causeway("withdrawals", "cancel", id, ...CANCEL)).text).toContain("frozen");
  expect((await desk.read(id)).status).toBe("frozen");
  expect(await desk.availableAtoken("alice")).toBe(9n * TOKEN);
  await linkPayment(id);
});

it("takes nothing back at the command line by a node that does not answer, or is late", async () => {
  const { id } = await desk.request(wish);
  const typed = () => desk.causeway("withdrawals", "cancel", id, ...CANCEL);
  desk.chain.isDown = true;
  await expect(typed()).rejects.toMatchObject({ code: "NODE_UNFIT" });
  desk.chain.isDown = false;
  desk.chain.isSyncing = true;
  await expect(typed()).rejects.toMatchObject({ code: "NODE_UNFIT" });
  desk.chain.isSyncing = false;
  desk.chain.chainId += 1n;
  await expect(typed()).rejects.toMatchObject({ code: "NODE_FOREIGN" });
  desk.chain.chainId -= 1n;
  expect((await desk.read(id)).status).toBe("accepted");
  expect((await typed()).code).toBe(0);
  expect((await desk.read(id)).status).toBe("cancelled");
});

/** What the node says of its head, one answer after the other, and then the last. */
function tellHeads(...heads: readonly number[]): void {
  const left = [...heads];
  Object.defineProperty(desk.chain, "toldHead", {
    get: () => (left.length > 1 ? left.shift() : left[0]),
    configurable: true,
  });
}

it("takes nothing back at the command line where any answer is older than what the ledger has seen", async () => {
  const { id } = await desk.request(wish);
  for (let block = 0; block < 4; block += 1) desk.chain.mine();
  await desk.watch();
  const { head } = desk.chain;
  const refused = { code: "NODE_UNFIT", message: expect.stringContaining(`${head}`) };
  for (const [word, ...flags] of [["cancel"], ["reject", "--operator", "ben"]] as const) {
    const typed = () =>
      desk.causeway("withdrawals", word, id, "--reason", "changed its mind", ...flags);
    // The node as such, and one that a balancer asks behind it.
    tellHeads(head - 3);
    await expect(typed()).rejects.toMatchObject(refused);
    tellHeads(head, head - 1);
    await expect(typed()).rejects.toMatchObject(refused);
  }
  expect((await desk.read(id)).status).toBe("accepted");
  tellHeads(head);
  expect((await desk.causeway("withdrawals", "cancel", id, ...CANCEL)).code).toBe(0);
  expect((await desk.read(id)).status).toBe("cancelled");
});

it("takes back at the command line what has a nonce, whatever the node says", async () => {
  desk.chain.unmined.add(destination(1));
  const { id } = await desk.request(wish);
  await desk.lane().runRound(desk.signal);
  desk.chain.isDown = true;
  expect((await desk.causeway("withdrawals", "cancel", id, ...CANCEL)).code).toBe(0);
  expect((await desk.read(id)).status).toBe("cancelling");
});

it("keeps no reason that the API would not take", async () => {
  const { id } = await desk.request(wish);
  const typed = (reason: string) => desk.causeway("withdrawals", "cancel", id, "--reason", reason);
  await expect(typed("x".repeat(501))).rejects.toMatchObject({ code: "USAGE" });
  expect((await typed("two\nlines")).code).toBe(0);
  expect((await desk.read(id)).reason).toBe("two lines");
});

it("rejects nothing that the chain may have paid behind the ledger's back", async () => {
  const policy = policyOf({ approvals: [{ aboveUnits: 0n, needed: 1, signed: false }] });
  desk.files.policy = policy;
  await activatePolicy(desk.database, () => policy);
  const { id } = await desk.request(wish);
  const standby = await desk.backup();
  await desk.causeway("withdrawals", "approve", id, "--reason", "known", "--operator", "ann");
  await desk.work(1);
  expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
  await desk.useDatabase(standby);
  expect((await desk.read(id)).status).toBe("pending_approval");
  await desk.causeway("withdrawals", "reject", id, "--reason", "unknown", "--operator", "ben");
  expect((await desk.read(id)).status).toBe("frozen");
  expect(await desk.availableAtoken("alice")).toBe(9n * TOKEN);
});

it("takes nothing back in a ledger that is behind its home, before anybody has closed it", async () => {
  const { id } = await desk.request(wish);
  const guard = await desk.guard();
  const standby = await desk.backup();
  await desk.work(1);
  await guard.keep();
  await desk.useDatabase(standby);
  const home = await desk.guard();
  const known = { assertStands: (tx: Sql) => home.assertStands(tx) };
  const cancelled = cancelWithdrawal(desk.workerDatabase, id, "changed its mind", known);
  await expect(cancelled).rejects.toMatchObject({ code: "RECOVERY" });
  expect((await desk.read(id)).status).toBe("accepted");
});

it("gives nonces again once the wallet that lost some is retired", async () => {
  const shown = new Map([[WALLET, { nonce: 7n }]]);
  expect(await lostNonces(desk.workerDatabase, shown)).toBe(WALLET);
  const reason = ["--reason", "lost commits", "--operator", "ann"];
  await desk.causeway("wallets", "drain", WALLET, ...reason);
  const retired = await desk.causeway("wallets", "retire", WALLET, "--leave-behind", ...reason);
  expect(retired).toMatchObject({ code: 0 });
  expect(await lostNonces(desk.workerDatabase, shown)).toBeUndefined();
});

it("looks at every wallet before a deadline ends what another one may have paid", async () => {
  desk.writeKeystore("wallets/second.json", SECOND);
  await desk.restart();
  desk.pay([SECOND, 50n * TOKEN]);
  desk.chain.mine();
  await desk.watch();
  const lanes = () => [desk.laneOf(KEY), desk.laneOf(SECOND_KEY)];
  await desk.work(1, lanes());
  await desk.watch();
  const id = await losePayment(() => desk.work(2, lanes()));
  await passDeadline(id);
  const other = payer() === SECOND ? KEY : SECOND_KEY;
  await desk.laneOf(other).runRound(desk.signal);
  expect((await desk.read(id)).status).not.toBe("cancelled");
  await linkPayment(id, lanes);
});

/** Who paid it, by the chain alone. */
function payer(): string | undefined {
  const [wallet] = desk.chain.blocks.flatMap(({ transactions }) =>
    transactions.flatMap(({ signed }) => (signed?.tx.to === destination(1) ? [signed.from] : [])),
  );
  return wallet;
}
