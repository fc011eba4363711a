/** Payments that a recovery booked, whose blocks are lost, and that end otherwise on the chain that came back. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { type Address, parseAddress } from "../../../../chain/address.js";
import { encodeTransfer } from "../../../../chain/evm/erc20.js";
import { bytesToHex, type Hash32, hexToBytes } from "../../../../chain/hex.js";
import { signLegacy } from "../../../../chain/transaction.js";
import { readLiabilities } from "../../../../ledger/books/liabilities.js";
import { readFreeze } from "../../../../ledger/requests/signing-freeze.js";
import { FAKE_CHAIN_ID, testAddress } from "../../../helpers/chains/fake-chain.js";
import { Desk, destination, KEY, STRANGER, TOKEN, WALLET } from "../desk.js";

const FIELDS = { customer: "alice", to: destination(1), amountAtoken: TOKEN };
const REASON = ["--reason", "looked at the chain"];

let desk: Desk;
let raw: string;
let hash: Hash32;
let kept: number;
let backup: string;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
  backup = await desk.backup();
  kept = desk.chain.head;
  raw = signed(destination(1), TOKEN);
});
afterEach(() => desk.close());

function signed(to: Address, valueAtoken: bigint, data: Uint8Array = new Uint8Array(0)): string {
  const intent = { chainId: FAKE_CHAIN_ID, nonce: 0n, gasPriceAtoken: 30_000_000n };
  const rest = { gasLimit: 21_000n, to, valueAtoken, data };
  return bytesToHex(signLegacy({ ...intent, ...rest }, KEY));
}

/** The payment is mined, and a ledger of before finds it. */
async function recover(): Promise<void> {
  hash = desk.chain.submit(raw);
  desk.chain.mine();
  await desk.register("bob");
  await desk.watch();
  await desk.useDatabase(backup);
  await desk.watch();
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  await desk.watch();
  expect(await desk.breaks()).toBe("");
}

/** A payment that the ledger makes and settles itself. */
async function settle() {
  const { id } = await desk.request({ key: "own", ...FIELDS });
  await desk.work();
  await desk.watch();
  expect((await desk.read(id)).status).toBe("settled");
  const [own = ""] = desk.ownHashes();
  return { id, hash: own };
}

/** The payment is found by a recovery, and settles the request that a client has repeated. */
async function recoverAndLink() {
  await recover();
  const wanted = await desk.request({ key: "again", ...FIELDS });
  await desk.work(1);
  await desk.causeway("ledger", "link-payment", hash, "--withdrawal", wanted.id, ...REASON);
  expect((await desk.read(wanted.id)).status).toBe("settled");
  expect(await alice()).toEqual([9n * TOKEN, 0n]);
  await desk.watch();
  expect(await desk.breaks()).toBe("");
  return { id: wanted.id, hash };
}

/** The chain comes back without the payment, a person recovers, and its bytes are mined again. */
async function loseAndMine(): Promise<void> {
  await desk.loseAbove(kept);
  await desk.work(1);
  // Who has its bytes sends them.
  expect(await desk.causeway("recover", "--apply")).toMatchObject({
    code: 1,
    text: expect.stringContaining(`NOT SENT: ${hash}: its bytes are not here`),
  });
  await desk.watch();
  desk.chain.submit(raw);
  desk.chain.mine();
  desk.chain.mine();
  await desk.watch();
}

const alice = async () => [await desk.availableAtoken("alice"), await desk.breakAtoken()];

const open = async () => (await desk.causeway("ledger", "open")).text;

async function accept(name: string, account: string): Promise<void> {
  await desk.causeway("ledger", "accept-remined", name, "--account", account, ...REASON);
}

describe("a recovered payment that settled a request", () => {
  it("is a person's matter where it fails, and its customer gets it back once", async () => {
    const { id } = await recoverAndLink();
    desk.chain.revertingOnChain.add(destination(1));
    await loseAndMine();
    expect(desk.paidAtoken(destination(1))).toBe(0n);
    // Books and chain agree, and what was not paid is a break until somebody says whose it is.
    expect([await desk.breaks(), ...(await alice())]).toEqual(["", 9n * TOKEN, -TOKEN]);
    expect((await readFreeze(desk.database, WALLET)).reason).toContain(id);
    for (const text of [`${id}-r1`, hash, "did not take 1 TOKEN", "liability:customer:alice"]) {
      expect(await open()).toContain(text);
    }
    await accept(`${id}-r1`, "liability:customer:alice");
    expect([await desk.breaks(), ...(await alice())]).toEqual(["", 10n * TOKEN, 0n]);
    await expectOwed();
    const again = accept(`${id}-r1`, "liability:customer:alice");
    await expect(again).rejects.toMatchObject({ code: "DECIDED_ALREADY" });
    expect(await open()).toBe("Nothing waits for a person.");
    // Those blocks are lost as well, and it pays: what was given is taken back.
    desk.chain.revertingOnChain.clear();
    await loseAndMine();
    expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
    expect([await desk.breaks(), ...(await alice())]).toEqual(["", 9n * TOKEN, 0n]);
    expect(await open()).toBe("Nothing waits for a person.");
  });

  it("is nobody's matter where it pays again, for another fee", async () => {
    await recoverAndLink();
    desk.chain.gasPerPayment = 20_000n;
    await loseAndMine();
    expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
    expect([await desk.breaks(), ...(await alice())]).toEqual(["", 9n * TOKEN, 0n]);
    expect(await open()).toBe("Nothing waits for a person.");
  });
});

describe("a recovered payment of a token that settled a request", () => {
  const PLAIN = parseAddress(testAddress(0x706c));

  beforeEach(async () => {
    desk.chain.token = PLAIN;
    desk.tokens = [{ contractAddress: PLAIN, symbol: "PLAIN", decimals: 18 }];
    writeFileSync(join(desk.home, "config", "tokens.json"), JSON.stringify(desk.tokens));
    const { address } = await desk.register("carol");
    const moves = [WALLET, address].map((to) => ({ from: undefined, to, units: 1_000n }));
    desk.chain.mine([desk.chain.tokenPayment(STRANGER, ...moves)]);
    await desk.watch();
    await desk.lane().runRound(desk.signal);
    backup = await desk.backup();
    kept = desk.chain.head;
    const call = encodeTransfer({ to: destination(1), amountUnits: 77n });
    raw = signed(PLAIN, 0n, hexToBytes(call));
  });

  it("is a person's matter where it moves nothing, and its customer gets it back", async () => {
    await recover();
    const terms = { customer: "carol", to: destination(1), amountAtoken: 77n, asset: "PLAIN" };
    const { id } = await desk.request({ key: "again", ...terms });
    await desk.work(1);
    await desk.causeway("ledger", "link-payment", hash, "--withdrawal", id, ...REASON);
    const carol = () => desk.availableAtoken("carol");
    expect([(await desk.read(id)).status, await carol()]).toEqual(["settled", 923n]);
    desk.chain.revertingOnChain.add(destination(1));
    await loseAndMine();
    expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", -77n]);
    expect(await open()).toContain(`${id}-r1`);
    await accept(`${id}-r1`, "liability:customer:carol");
    expect([await desk.breaks(), await desk.breakAtoken(), await carol()]).toEqual([
      "",
      0n,
      1_000n,
    ]);
    expect(await open()).toBe("Nothing waits for a person.");
  });
});

describe("a recovered payment that nobody has claimed", () => {
  it("is a person's matter where it fails, and costs nobody anything", async () => {
    await recover();
    desk.chain.revertingOnChain.add(destination(1));
    await loseAndMine();
    expect([await desk.breaks(), ...(await alice())]).toEqual(["", 10n * TOKEN, -TOKEN]);
    expect((await readFreeze(desk.database, WALLET)).reason).toContain(hash);
    expect(await open()).toContain(`${hash}-r1`);
    const undecided = accept(`${hash}-r1`, "asset:recovered_payments");
    await expect(undecided).rejects.toMatchObject({ code: "INVALID_DECISION" });
    await desk.causeway("ledger", "write-off-payment", hash, ...REASON);
    await accept(`${hash}-r1`, "expense:write_off");
    expect([await desk.breaks(), ...(await alice())]).toEqual(["", 10n * TOKEN, 0n]);
    expect(await open()).toBe("Nothing waits for a person.");
    expect(await bornAtoken()).toBe(0n);
  });
});

describe("a recovered payment that had failed", () => {
  it("is a person's matter where it pays, and its customer is charged once", async () => {
    desk.chain.revertingOnChain.add(destination(1));
    await recover();
    expect(await open()).toBe("Nothing waits for a person.");
    desk.chain.revertingOnChain.clear();
    await loseAndMine();
    expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
    expect([await desk.breaks(), ...(await alice())]).toEqual(["", 10n * TOKEN, TOKEN]);
    expect((await readFreeze(desk.database, WALLET)).reason).toContain(hash);
    for (const text of [`${hash}-r1`, "took 1 TOKEN"]) expect(await open()).toContain(text);
    await accept(`${hash}-r1`, "liability:customer:alice");
    expect([await desk.breaks(), ...(await alice())]).toEqual(["", 9n * TOKEN, 0n]);
    expect(await open()).toBe("Nothing waits for a person.");
    await expectOwed();
  });

  it("is charged to who asked again, whose request is taken back and not paid as well", async () => {
    desk.chain.revertingOnChain.add(destination(1));
    await recover();
    desk.chain.revertingOnChain.clear();
    const again = await desk.request({ key: "again", ...FIELDS });
    await loseAndMine();
    // Nothing is signed before a person has looked.
    await desk.work();
    expect((await desk.read(again.id)).status).toBe("accepted");
    await desk.causeway("withdrawals", "cancel", again.id, ...REASON);
    await accept(`${hash}-r1`, "liability:customer:alice");
    expect((await desk.causeway("withdrawals", "release")).code).toBe(0);
    await desk.work();
    await desk.watch();
    expect((await desk.read(again.id)).status).toBe("cancelled");
    expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
    expect([await desk.breaks(), ...(await alice())]).toEqual(["", 9n * TOKEN, 0n]);
  });
});

describe("a payment that is never mined again, since another transaction has used its nonce", () => {
  it.each([
    ["that a recovery found", recoverAndLink],
    ["that the ledger made", settle],
  ])("is given back to its customer by corrections: one %s", async (_, paid) => {
    const { hash: own } = await paid();
    expect(await alice()).toEqual([9n * TOKEN, 0n]);
    const lost = desk.chain.head;
    desk.chain.rollBack(kept);
    const other = desk.chain.submit(signed(WALLET, 0n));
    desk.chain.mine();
    const block = `${desk.chain.head}`;
    while (desk.chain.head <= lost) desk.chain.mine();
    await desk.watch();
    expect((await desk.causeway("recover", "--apply")).code).toBe(0);
    desk.chain.mine();
    await desk.watch();
    // What it had taken, with its fee, is what the wallet has more than the books.
    const missing = new RegExp(
      `${own} is not on the chain: chain 0 atoken, ledger -([0-9]+) atoken`,
    );
    const taken = BigInt(missing.exec(await desk.breaks())?.[1] ?? "0");
    expect(taken).toBeGreaterThan(TOKEN);
    expect(await open()).toContain(`outflow ${other}`);
    const accepted = ["ledger", "accept-outflow", other, "--account", "expense:network_fee"];
    await desk.causeway(...accepted, ...REASON);
    const proof = ["--tx", other, "--block", block, ...REASON];
    const give = async (key: string, credit: string, atoken: bigint) => {
      const sides = ["--debit", `asset:wallet:${WALLET}`, "--credit", credit];
      const amount = ["--amount-atoken", `${atoken}`];
      await desk.causeway(
        "ledger",
        "adjust",
        "--key",
        `${key}:${own}`,
        ...sides,
        ...amount,
        ...proof,
      );
    };
    await give("never-mined", "liability:customer:alice", TOKEN);
    await give("never-mined-fee", "expense:network_fee", taken - TOKEN);
    expect([await desk.breaks(), ...(await alice())]).toEqual(["", 10n * TOKEN, 0n]);
    expect(await open()).toBe("Nothing waits for a person.");
    expect((await desk.causeway("withdrawals", "release")).code).toBe(0);
    const next = await desk.request({ key: "next", ...FIELDS });
    await desk.work();
    await desk.watch();
    expect((await desk.read(next.id)).status).toBe("settled");
    expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
    expect([await desk.breaks(), ...(await alice())]).toEqual(["", 9n * TOKEN, 0n]);
  });
});

/** What is owed is known at every block: it throws where somebody is owed less than nothing. */
async function expectOwed(): Promise<void> {
  for (let height = 1; height <= desk.chain.head; height += 1) {
    expect((await readLiabilities(desk.database, { height })).liabilities).toBeDefined();
  }
}

/** What the exchange has lost by what was written off. */
async function bornAtoken(): Promise<bigint> {
  const [row] = await desk.database.query<{ units: string }>(
    `SELECT coalesce(sum(CASE WHEN debit = 'expense:write_off' THEN amount_units
                              ELSE -amount_units END), 0)::text AS units
       FROM posting WHERE 'expense:write_off' IN (debit, credit)`,
  );
  return BigInt(row?.units ?? "0");
}
