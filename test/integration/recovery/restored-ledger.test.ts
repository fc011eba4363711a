/** Drills: an older database is put back, or an empty one. No payment, address or number comes twice. */
import { rmSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { keccak256 } from "../../../chain/hashes.js";
import { bytesToHex } from "../../../chain/hex.js";
import { privateKeyToAddress } from "../../../chain/signing/account-key.js";
import { signLegacy } from "../../../chain/transaction.js";
import { listEvents } from "../../helpers/events.js";
import { cancelWithdrawal } from "../../../ledger/withdrawals/cancellation.js";
import { readCursor } from "../../../ledger/watch/watch-cursor.js";
import { beginWatch, openGuarded } from "../../../deposit-watcher/watch-start.js";
import { createEvmClient } from "../../../rpc-client/evm-client.js";
import { FAKE_CHAIN_ID } from "../../helpers/chains/fake-chain.js";
import { createPatientClient } from "../../helpers/exchange/patient-node.js";
import { silentLog } from "../../helpers/services/ledger.js";
import { Desk, destination, derivation, KEY, TOKEN, WALLET } from "./desk.js";

/** A second hot wallet. */
const SECOND_KEY = keccak256(Buffer.from("second hot wallet of a restored ledger"));
const SECOND = privateKeyToAddress(SECOND_KEY);

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.open();
});
afterEach(() => desk.close());

const events = () => listEvents(desk.database, { afterSeq: 0, limit: 1_000 });

/** Reads all events as an integrator does, so that the home knows them as told. */
async function follow(): Promise<{ epoch: number; seq: number }[]> {
  const rows = await events();
  await (await desk.guard()).beforeTelling({ eventSeq: rows.at(-1)?.seq ?? 0 });
  return rows.map(({ epoch, seq }) => ({ epoch, seq }));
}

/** A life before the backup (alice is paid out once) and one behind it (alice again, bob, carol). */
async function live(): Promise<string> {
  const alice = await desk.register("alice");
  desk.pay([alice.address, 10n * TOKEN]);
  desk.chain.mine();
  await desk.watch();
  await desk.request({ key: "a1", customer: "alice", to: destination(1), amountAtoken: TOKEN });
  await desk.work();
  await desk.watch();
  await follow();
  const backup = await desk.backup();
  const bob = await desk.register("bob");
  await desk.register("carol");
  desk.pay([bob.address, 5n * TOKEN], [alice.address, TOKEN]);
  desk.chain.mine();
  await desk.watch();
  await desk.request({
    key: "a2",
    customer: "alice",
    to: destination(2),
    amountAtoken: 2n * TOKEN,
  });
  await desk.request({ key: "b1", customer: "bob", to: destination(3), amountAtoken: 3n * TOKEN });
  await desk.work();
  await desk.watch();
  await follow();
  return backup;
}

describe("an older database that was put back", () => {
  it("is recovered by no node that is catching up: it may lack what was paid", async () => {
    const backup = await live();
    await desk.useDatabase(backup);
    desk.chain.isSyncing = true;
    for (const more of [[], ["--apply"], ["--declare", "an older copy", "--apply"]]) {
      await expect(desk.causeway("recover", ...more)).rejects.toMatchObject({ code: "NODE_UNFIT" });
    }
    desk.chain.isSyncing = false;
    // It was closed all the same.
    await expect(desk.register("dora")).rejects.toMatchObject({ code: "RECOVERY" });
    expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  });

  it("is closed, recovered from home and chain, and pays nothing a second time", async () => {
    const backup = await live();
    const told = await follow();
    const paidBefore = desk.ownHashes();
    expect(paidBefore).toHaveLength(3);
    await desk.useDatabase(backup);

    // Closed: the watcher books nothing, the worker signs nothing, nobody gets an address.
    await desk.watch();
    await expect(desk.register("mallory")).rejects.toMatchObject({ code: "RECOVERY" });
    const repeat = { key: "a2", customer: "alice", to: destination(2), amountAtoken: 2n * TOKEN };
    await expect(desk.request(repeat)).rejects.toMatchObject({ code: "RECOVERY" });
    await desk.work(2);
    await expect(desk.causeway("withdrawals", "release", "--accept-foreign")).rejects.toMatchObject(
      {
        code: "RECOVERY",
      },
    );
    await expect(desk.causeway("deposits", "resume")).rejects.toThrow("causeway recover");
    expect(desk.ownHashes()).toEqual(paidBefore);

    // Nothing but the recovery waits for a person, and it does.
    const halted = await desk.causeway("ledger", "open");
    const said = expect.stringMatching(/RECOVERY.*causeway recover/);
    expect([halted.code, halted.text]).toEqual([1, said]);

    // The plan changes nothing.
    const plan = await desk.causeway("recover");
    expect(plan.code).toBe(1);
    expect(plan.text).toContain("register 2 addresses without a customer, indexes 1 to 2");
    expect(plan.text).toContain("book 2 payments");
    expect(plan.text).toContain("Nothing was changed");
    const applied = await desk.causeway("recover", "--apply");
    expect([applied.code, applied.text]).toEqual([0, expect.stringContaining("keys list")]);
    expect((await desk.causeway("recover")).text).toContain("nothing to do");

    // Open again: no number twice, no index twice.
    await desk.watch();
    const rows = await events();
    expect(new Set(rows.map(({ seq }) => seq)).size).toBe(rows.length);
    const fresh = rows.filter(({ epoch }) => epoch === 2);
    const lastTold = told.at(-1)?.seq ?? 0;
    expect(fresh.map(({ seq }) => seq)).toEqual(fresh.map((_, place) => lastTold + 1 + place));
    expect(rows.filter(({ epoch }) => epoch > 2)).toEqual([]);
    const dave = await desk.register("dave");
    expect(dave.index).toBe(3);
    expect(await desk.breaks()).toBe("");

    // Positions of lists that were told are not told of other rows.
    const [position] = await desk.database.query<{ first: string }>(
      `SELECT min(seq)::text AS first FROM deposit WHERE height > 5`,
    );
    expect(Number(position?.first)).toBeGreaterThan(1_000_000_000);

    // The client repeats its lost request: frozen, named, not paid.
    const again = await desk.request(repeat);
    await desk.work(3);
    const frozen = await desk.read(again.id);
    expect(frozen.status).toBe("frozen");
    expect(frozen.reason).toContain(paidBefore[1]);
    expect(desk.paidAtoken(destination(2))).toBe(2n * TOKEN);

    // A release does not lift it.
    await desk.causeway("withdrawals", "release", again.id, "--not-paid");
    await desk.work(2);
    expect((await desk.read(again.id)).status).toBe("frozen");
    const paidBy = desk.causeway(
      "withdrawals",
      "release",
      again.id,
      "--paid-by",
      `${paidBefore[1]}`,
    );
    await expect(paidBy).rejects.toThrow("causeway ledger open");

    // A person decides: it was that payment; the address is bob's, and so are its deposits.
    const reason = ["--reason", "the client's own records", "--operator", "ann"];
    const [, second = "", third = ""] = paidBefore;
    const open = await desk.causeway("ledger", "open");
    expect(open.code).toBe(1);
    for (const text of [second, third, "has no customer", again.id]) {
      expect(open.text).toContain(text);
    }
    await desk.causeway("ledger", "link-payment", second, "--withdrawal", again.id, ...reason);
    expect(await desk.read(again.id)).toMatchObject({ status: "settled", txHash: second });
    const bob = derivation.addressAt(1);
    await desk.causeway(
      "ledger",
      "assign-address",
      bob,
      "--customer",
      "bob",
      "--with-deposits",
      ...reason,
    );
    expect(await desk.availableAtoken("bob")).toBe(5n * TOKEN);
    const claim = ["--customer", "bob", "--idempotency-key", "b1"];
    await desk.causeway("ledger", "link-payment", third, ...claim, ...reason);
    expect(await desk.availableAtoken("bob")).toBe(2n * TOKEN);
    // The repeat of the claimed request gets its answer.
    const b1 = { key: "b1", customer: "bob", to: destination(3), amountAtoken: 3n * TOKEN };
    expect(await desk.request(b1)).toMatchObject({ status: "settled", txHash: third });

    await desk.work(2);
    await desk.watch();
    expect(await desk.breaks()).toBe("");
    expect((await desk.causeway("ledger", "open")).text).toBe("Nothing waits for a person.");
    expect(desk.ownHashes()).toEqual(paidBefore);
    expect([1, 2, 3].map((n) => desk.paidAtoken(destination(n)))).toEqual([
      TOKEN,
      2n * TOKEN,
      3n * TOKEN,
    ]);
    // Bob's address credits bob again.
    desk.pay([bob, 7n]);
    desk.chain.mine();
    await desk.watch();
    expect(await desk.availableAtoken("bob")).toBe(2n * TOKEN + 7n);
    expect(await desk.breaks()).toBe("");
  });

  it("pays an equal request when a person says that it is another one, once", async () => {
    const backup = await live();
    await desk.useDatabase(backup);
    await desk.watch();
    await desk.causeway("recover", "--apply");
    await desk.watch();
    const fields = { customer: "alice", to: destination(2), amountAtoken: 2n * TOKEN };
    const other = await desk.request({ key: "another", ...fields });
    await desk.work(2);
    expect((await desk.read(other.id)).status).toBe("frozen");
    // It would freeze again: nobody is told that it will be paid, by the command or by an event.
    const notPaid = await desk.causeway("withdrawals", "release", other.id, "--not-paid");
    const named = expect.stringContaining(`causeway ledger pay-withdrawal ${other.id}`);
    expect([notPaid.code, notPaid.text]).toEqual([1, named]);
    const told = (await desk.read(other.id)).history.map(({ status }) => status);
    expect(told).toEqual(["accepted", "frozen"]);
    const pay = ["ledger", "pay-withdrawal", other.id, "--reason", "a new order"];
    await desk.causeway(...pay);
    await expect(desk.causeway(...pay)).rejects.toMatchObject({ code: "DECIDED_ALREADY" });
    await desk.work();
    expect((await desk.read(other.id)).status).toBe("settled");
    expect(desk.paidAtoken(destination(2))).toBe(4n * TOKEN);
    const lost = desk.ownHashes()[2] ?? "";
    await desk.causeway("ledger", "write-off-payment", lost, "--reason", "nobody claims it");
    await desk.watch();
    expect(await desk.breaks()).toBe("");
  });

  it("is recovered on a person's word where the home forgot it, and calls no own payment a theft", async () => {
    const backup = await live();
    await desk.useDatabase(backup);
    rmSync(`${desk.home}/data`, { recursive: true });
    // Nobody remembers: the watcher books on, and takes the kit's own payments for somebody else's.
    await desk.watch();
    expect(await desk.breaks()).toContain("BREAK");
    expect((await desk.causeway("recover", "--declare", "an older backup")).code).toBe(1);
    expect((await desk.causeway("recover", "--apply")).code).toBe(0);
    const open = await desk.causeway("ledger", "open", "--json");
    expect(JSON.parse(open.text)).toMatchObject({ outflows: [], payments: [{}, {}] });
    const [, own = ""] = desk.ownHashes();
    const twice = desk.causeway("ledger", "accept-outflow", own, "--reason", "a mistake");
    await expect(twice).rejects.toMatchObject({ code: "INVALID_DECISION" });
    await desk.watch();
    expect(await desk.breaks()).toBe("");
  });

  it("calls nothing unknown that a person had accepted as an outflow, and books it no second time", async () => {
    desk.writeKeystore("wallets/second.json", SECOND);
    await desk.restart();
    desk.pay([SECOND, 50n * TOKEN]);
    await desk.watch();
    const terms = { nonce: 0n, to: WALLET, valueAtoken: 49n * TOKEN, data: new Uint8Array(0) };
    const gas = { gasPriceAtoken: 30_000_000n, gasLimit: 21_000n };
    const moved = signLegacy({ chainId: FAKE_CHAIN_ID, ...terms, ...gas }, SECOND_KEY);
    const hash = bytesToHex(keccak256(moved));
    desk.chain.submit(bytesToHex(moved));
    desk.chain.mine();
    await desk.watch();
    const word = ["--reason", "a rotation"];
    const suspense = ["--account", "liability:suspense"];
    await desk.causeway("ledger", "accept-outflow", hash, ...suspense, ...word);
    const released = ["--wallet", SECOND, "--acknowledge", hash];
    await desk.causeway("withdrawals", "release", ...released, ...word);
    await follow();
    const backup = await desk.backup();
    await desk.register("bob");
    await follow();
    await desk.useDatabase(backup);
    await desk.watch();
    const { text } = await desk.causeway("recover");
    expect(text).toMatch(new RegExp(`${hash}.*booked already`));
    expect(text).not.toMatch(/book [1-9]/);
    expect((await desk.causeway("recover", "--apply")).code).toBe(0);
    await desk.watch();
    expect(await desk.breaks()).toBe("");
  });

  it("finds own payments whose nonces were released as foreign ones, and pays none again", async () => {
    const backup = await live();
    await desk.useDatabase(backup);
    rmSync(`${desk.home}/data`, { recursive: true });
    await desk.watch();
    await desk.work(1);
    const word = ["--reason", "nobody asked for them"];
    await desk.causeway("withdrawals", "release", "--accept-foreign", ...word);
    const declared = ["--declare", "it is an older backup", "--apply"];
    const { code, text } = await desk.causeway("recover", ...declared);
    expect([code, /book (\d+) payments/.exec(text)?.[1]]).toEqual([0, "2"]);
    const repeat = { key: "a2", customer: "alice", to: destination(2), amountAtoken: 2n * TOKEN };
    const { id } = await desk.request(repeat);
    await desk.work();
    expect((await desk.read(id)).status).toBe("frozen");
    expect(desk.paidAtoken(destination(2))).toBe(2n * TOKEN);
    await desk.watch();
    expect(await desk.breaks()).toBe("");
  });

  it("freezes what waited in the backup and was paid behind it, and settles a taken slot", async () => {
    const alice = await desk.register("alice");
    desk.pay([alice.address, 10n * TOKEN]);
    desk.chain.mine();
    await desk.watch();
    await desk.lane().runRound(desk.signal);
    const fields = { customer: "alice", amountAtoken: TOKEN };
    const waiting = await desk.request({ key: "w", to: destination(1), ...fields });
    const backup = await desk.backup();
    await desk.work();
    await desk.register("bob");
    await desk.useDatabase(backup);
    await desk.watch();
    const applied = await desk.causeway("recover", "--apply", "--json");
    expect(JSON.parse(applied.text)).toMatchObject({ result: { frozen: [waiting.id] } });
    await desk.work();
    expect((await desk.read(waiting.id)).status).toBe("frozen");
    expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
  });
});

describe("what waited in the backup", () => {
  /** Two requests that the wallet has not begun; behind the backup their customer cancels both. */
  async function cancelledBehindBackup() {
    const alice = await desk.register("alice");
    desk.pay([alice.address, 10n * TOKEN]);
    desk.chain.mine();
    await desk.watch();
    await desk.lane().runRound(desk.signal);
    const fields = { customer: "alice", amountAtoken: TOKEN };
    const first = await desk.request({ key: "c1", to: destination(1), ...fields });
    const second = await desk.request({ key: "c2", to: destination(2), ...fields });
    const backup = await desk.backup();
    for (const { id } of [first, second]) {
      expect(await cancelWithdrawal(desk.database, id, "changed my mind")).toBe("done");
    }
    await follow();
    await desk.register("bob");
    await desk.useDatabase(backup);
    await desk.watch();
    await desk.causeway("recover", "--apply");
    await desk.watch();
    await desk.work(3);
    return { first, second };
  }

  it("is not paid behind everybody's back: it may have been cancelled", async () => {
    const { first, second } = await cancelledBehindBackup();
    expect([1, 2].map((n) => desk.paidAtoken(destination(n)))).toEqual([0n, 0n]);
    expect((await desk.read(first.id)).status).toBe("frozen");
    // The client says so again, a person lets the other one be paid.
    expect(await cancelWithdrawal(desk.database, first.id, "changed my mind")).toBe("done");
    for (const { id } of [first, second]) {
      await desk.causeway("withdrawals", "release", id, "--not-paid");
    }
    await desk.work(3);
    await desk.watch();
    expect((await desk.read(first.id)).status).toBe("cancelled");
    expect((await desk.read(second.id)).status).toBe("settled");
    expect([1, 2].map((n) => desk.paidAtoken(destination(n)))).toEqual([0n, TOKEN]);
    expect(await desk.availableAtoken("alice")).toBe(9n * TOKEN);
    expect(await desk.breaks()).toBe("");
  });
});

describe("an empty database", () => {
  it("gives out and pays nothing again; all that the chain proves comes back", async () => {
    await live();
    const paidBefore = desk.ownHashes();
    await desk.useEmptyDatabase();
    await desk.watch();
    await desk.work(1);
    await expect(desk.register("mallory")).rejects.toMatchObject({ code: "RECOVERY" });
    expect((await desk.causeway("recover", "--apply")).code).toBe(0);
    await desk.watch();
    await desk.work(1);
    expect(await desk.breaks()).toBe("");
    expect((await desk.register("dave")).index).toBe(3);

    const reason = ["--reason", "records of the exchange"];
    for (const [index, customer] of ["alice", "bob", "carol"].entries()) {
      const address = derivation.addressAt(index);
      const whose = ["--customer", customer, "--with-deposits"];
      await desk.causeway("ledger", "assign-address", address, ...whose, ...reason);
    }
    expect(await desk.availableAtoken("alice")).toBe(11n * TOKEN);
    const keys = [
      ["alice", "a1"],
      ["alice", "a2"],
      ["bob", "b1"],
    ] as const;
    for (const [place, [customer, key]] of keys.entries()) {
      const hash = paidBefore[place] ?? "";
      const claim = ["--customer", customer, "--idempotency-key", key];
      await desk.causeway("ledger", "link-payment", hash, ...claim, ...reason);
    }
    expect(await desk.availableAtoken("alice")).toBe(8n * TOKEN);
    expect(await desk.availableAtoken("bob")).toBe(2n * TOKEN);
    await desk.work(2);
    await desk.watch();
    expect(await desk.breaks()).toBe("");
    expect(desk.ownHashes()).toEqual(paidBefore);
    // The hot wallet goes on where the chain is.
    await desk.request({ key: "a9", customer: "alice", to: destination(9), amountAtoken: TOKEN });
    await desk.work();
    expect(desk.paidAtoken(destination(9))).toBe(TOKEN);
    expect(desk.chain.nonces.get(WALLET)).toBe(4n);
  });

  it("finds addresses by their activity where the home was lost, too", async () => {
    await live();
    // Index 9 was paid by somebody; 3 to 8 never were.
    desk.pay([derivation.addressAt(9), TOKEN]);
    desk.chain.mine();
    await desk.useEmptyDatabase();
    rmSync(`${desk.home}/data`, { recursive: true });
    // Begun as the home of an attached network says: of what was paid before it knows nothing.
    const node = createEvmClient(createPatientClient(desk.chain.url));
    const identity = { genesisHash: desk.chain.genesisHash, chainId: FAKE_CHAIN_ID };
    const { database, signal } = desk;
    await beginWatch({ database, node, identity, startHeight: "head", log: silentLog, signal });
    await desk.causeway("recover", "--declare", "both are gone");
    await expect(desk.causeway("recover", "--apply")).rejects.toMatchObject({
      code: "RECOVERY",
      message: expect.stringContaining('watcher.start-height = "genesis"'),
    });
    await desk.useEmptyDatabase();
    await desk.causeway("recover", "--declare", "both are gone");
    const plan = await desk.causeway("recover", "--apply");
    expect(plan.text).toContain("register 1010 addresses without a customer, indexes 0 to 1009");
    await desk.watch();
    expect(await desk.breaks()).toBe("");
    expect((await desk.register("dave")).index).toBe(1_010);
  });
});

describe("an empty database under a home that remembers another", () => {
  /** As the watcher starts. */
  async function begin(startHeight: string): Promise<void> {
    const node = createEvmClient(createPatientClient(desk.chain.url));
    const identity = { genesisHash: desk.chain.genesisHash, chainId: FAKE_CHAIN_ID };
    const { watcherDatabase: database, signal } = desk;
    const start = { database, node, identity, startHeight, log: silentLog, signal };
    await openGuarded(desk.home, [], start);
  }

  /** No address was given out; the wallet has paid somebody, in block 2. */
  async function payByHand(): Promise<void> {
    desk.chain.mine();
    await desk.watch();
    const terms = { nonce: 0n, to: destination(1), valueAtoken: TOKEN, data: new Uint8Array(0) };
    const gas = { gasPriceAtoken: 30_000_000n, gasLimit: 21_000n };
    desk.chain.submit(bytesToHex(signLegacy({ chainId: FAKE_CHAIN_ID, ...terms, ...gas }, KEY)));
    desk.chain.mine();
    desk.chain.mine();
    await (await desk.guard()).keep();
    await desk.useEmptyDatabase();
  }

  it("does not begin at the head: what was paid before would be taken off twice", async () => {
    await payByHand();
    for (const height of ["head", "head"]) await begin(height);
    const { code, text } = await desk.causeway("recover", "--apply");
    expect([code, text]).toEqual([0, expect.stringContaining("done: book 1 payments")]);
    // Started anew before a block is booked: its Data API makes its index anew, say.
    for (const height of ["head", "3"]) await begin(height);
    await desk.watch();
    expect(await desk.breaks()).toBe("");
  });

  it("begins at the height that somebody names, before what was lost", async () => {
    await payByHand();
    await begin("2");
    await begin("2");
    expect(await readCursor(desk.database)).toMatchObject({ height: 1 });
    const { code, text } = await desk.causeway("recover", "--apply");
    expect([code, text]).toEqual([0, expect.stringContaining("done: book 1 payments")]);
    await desk.watch();
    expect(await desk.breaks()).toBe("");
  });
});
