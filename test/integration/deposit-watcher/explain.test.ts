/** Why a transaction made no credit, over a real ledger: every way in which it makes none has a code. */
import { describe, expect, it } from "@jest/globals";
import { type Address, parseAddress } from "../../../chain/address.js";
import { AddressBook } from "../../../deposit-watcher/address-book.js";
import { explainTransaction } from "../../../deposit-watcher/api/explanation.js";
import { parseCustomerId } from "../../../ledger/journal/accounts.js";
import { resumeCrediting } from "../../../ledger/incidents.js";
import { DataApiError, RpcError } from "../../../rpc-client/errors.js";
import { change } from "../../helpers/chains/fake-chain.js";
import { recordIncident } from "../../helpers/services/ledger.js";
import { derivation, HOT, STRANGER, WatcherBench } from "../../helpers/services/watcher.js";
import { type DepositApi, depositApiForTests, hashOf } from "./deposit-api.js";

let api: DepositApi;
let bench: WatcherBench;
let alice: Address;

depositApiForTests((opened) => {
  api = opened;
  ({ bench, alice } = opened);
});

describe("GET /v1/deposits/explain", () => {
  it("names the state of deposits", async () => {
    const payment = bench.chain.payment(STRANGER, alice, 7n);
    bench.chain.mine([payment]);
    await bench.caughtUp();
    const waiting = await api.explain(payment.hash);
    expect(waiting).toMatchObject({ code: "CONFIRMING" });
    expect(waiting.deposits).toHaveLength(1);
    bench.chain.mine();
    await bench.caughtUp();
    expect(await api.explain(payment.hash)).toMatchObject({ code: "CREDITED" });
    const reward = bench.chain.mine([], [change({ reason: "MINT", to: alice, amountAtoken: 3n })]);
    await bench.caughtUp();
    expect(await api.explain(reward.hash)).toMatchObject({ code: "SUSPENSE" });
  });

  it("says so where a transaction made more deposits than are listed", async () => {
    const { chain } = bench;
    const paying = (count: number) => {
      const changes = Array.from({ length: count }, () => ({ to: alice, amountAtoken: 1n }));
      return chain.transaction(...changes.map((one) => change({ ...one, from: STRANGER })));
    };
    const [full, fuller] = [paying(100), paying(101)];
    chain.mine([full, fuller]);
    chain.mine();
    await bench.caughtUp();
    const message = "Its deposits are credited.";
    const all = await api.explain(full.hash);
    expect([all.code, all.message, all.deposits.length]).toEqual(["CREDITED", message, 100]);
    const some = await api.explain(fuller.hash);
    expect([some.code, some.deposits.length]).toEqual(["CREDITED", 100]);
    expect(some.message).toBe(
      `${message} It made more deposits than the 100 that are listed here.`,
    );
  });

  it("says the same by the hash that consensus has of a transaction", async () => {
    const { chain } = bench;
    const payment = chain.payment(STRANGER, alice, 7n);
    const empty = chain.payment(STRANGER, alice, 0n);
    const reverted = chain.payment(STRANGER, HOT, 1n);
    api.failed.add(reverted.hash);
    const { height: blockNumber } = chain.mine([payment, empty, reverted]);
    chain.mine();
    await bench.caughtUp();
    api.consensusHashes.set(hashOf("a"), payment.hash);
    api.consensusHashes.set(hashOf("b"), empty.hash);
    api.consensusHashes.set(hashOf("c"), reverted.hash);
    const { deposits } = await api.explain(payment.hash);
    expect(deposits).toHaveLength(1);
    expect(await api.explain(hashOf("a"))).toMatchObject({
      code: "CREDITED",
      blockNumber,
      deposits,
    });
    expect(await api.explain(hashOf("b"))).toMatchObject({ code: "NOTHING_ARRIVED", blockNumber });
    expect(await api.explain(hashOf("c"))).toMatchObject({ code: "FAILED", blockNumber });
    // The journal of an old block is deleted; the block itself has the transaction's own hash.
    api.isJournalPruned = true;
    const pruned = await Promise.all(["a", "b", "c"].map((digit) => api.explain(hashOf(digit))));
    api.isJournalPruned = false;
    expect(pruned.map(({ code }) => code)).toEqual(["CREDITED", "NOTHING_ARRIVED", "FAILED"]);
    expect(pruned[0]).toMatchObject({ blockNumber, deposits });
  });

  it("says of coins from before an address was registered that they are being booked", async () => {
    const payment = bench.chain.payment(STRANGER, derivation.addressAt(1), 7n);
    bench.chain.mine([payment]);
    bench.chain.mine();
    await bench.caughtUp();
    await api.running.stop();
    const late = await bench.register("bob");
    api.book.add([late]);
    const waiting = await api.explain(payment.hash);
    expect(waiting.code).toBe("NOT_READ_YET");
    expect(waiting.message).toContain("before the address was registered");
    api.running = bench.start();
    await bench.backfilled();
    expect(await api.explain(payment.hash)).toMatchObject({ code: "SUSPENSE" });
  });

  it("never says that nothing arrived where coins did", async () => {
    const payment = bench.chain.payment(STRANGER, derivation.addressAt(7), 7n);
    bench.chain.mine([payment]);
    await bench.caughtUp();
    // An address that only this book knows: the ledger has no deposit of it.
    const customerId = parseCustomerId("carol");
    const address = derivation.addressAt(7);
    const others = new AddressBook();
    others.add([{ index: 7, address, customerId, fromHeight: 0 }]);
    const { source, ledger } = bench;
    const parts = { database: ledger.database, node: api.node(), source, watched: others };
    const { signal } = new AbortController();
    const { code, message } = await explainTransaction(parts, payment.hash, { signal });
    expect(code).toBe("NOT_READ_YET");
    expect(message).toContain("brought coins");
  });

  it("names what keeps a transaction from a block", async () => {
    api.statuses.set(hashOf("1"), { status: "pending" });
    api.statuses.set(hashOf("2"), { status: "queued", missingNonce: 41n });
    api.statuses.set(hashOf("3"), { status: "replaced", by: hashOf("4") });
    api.statuses.set(hashOf("5"), { status: "dropped", reason: "underpriced" });
    expect(await api.explain(hashOf("1"))).toMatchObject({ code: "PENDING", blockNumber: null });
    expect((await api.explain(hashOf("2"))).message).toContain("41");
    const reason = "insufficient funds for gas * price + value";
    api.statuses.set(hashOf("7"), { status: "queued", missingNonce: 42n, reason });
    const { code, message } = await api.explain(hashOf("7"));
    expect([code, message]).toEqual([
      "QUEUED",
      `It is the sender's next one, and no block can have it yet: ${reason}.`,
    ]);
    expect((await api.explain(hashOf("3"))).message).toContain(hashOf("4"));
    expect((await api.explain(hashOf("5"))).message).toContain("underpriced");
    expect(await api.explain(hashOf("6"))).toMatchObject({
      code: "UNKNOWN_TRANSACTION",
      deposits: [],
    });
  });

  it("names why a transaction of a block made no deposit", async () => {
    const { chain } = bench;
    const elsewhere = chain.payment(STRANGER, HOT, 5n);
    const empty = chain.payment(STRANGER, alice, 0n);
    const itself = chain.transaction(change({ from: alice, to: alice, amountAtoken: 2n }));
    const undone = chain.transaction(
      change({ from: STRANGER, to: alice, amountAtoken: 2n, effective: false }),
    );
    const reverted = chain.payment(STRANGER, HOT, 1n);
    api.failed.add(reverted.hash);
    // A message that failed leaves its fee, and nothing at the address that it was for.
    const ofCosmos = chain.payment(STRANGER, HOT, 1n);
    api.failedCosmos.add(ofCosmos.hash);
    const { height } = chain.mine([elsewhere, empty, itself, undone, reverted, ofCosmos]);
    await bench.caughtUp();
    expect(await api.explain(elsewhere.hash)).toMatchObject({
      code: "NOT_OURS",
      blockNumber: height,
    });
    for (const { hash } of [empty, itself, undone]) {
      expect([hash, (await api.explain(hash)).code]).toEqual([hash, "NOTHING_ARRIVED"]);
    }
    expect(await api.explain(reverted.hash)).toMatchObject({ code: "FAILED" });
    expect(await api.explain(ofCosmos.hash)).toMatchObject({ code: "FAILED", blockNumber: height });
    // A node keeps blocks for longer than their journals: the rest is told without.
    api.isJournalPruned = true;
    expect(await api.explain(ofCosmos.hash)).toMatchObject({
      code: "NOT_OURS",
      blockNumber: height,
    });
    expect(await api.explain(empty.hash)).toMatchObject({ code: "NOTHING_ARRIVED" });
    api.isJournalPruned = false;
    // Who does not have the block does not say that it is nobody's of ours.
    api.isDataApiBehind = true;
    expect(await api.explain(empty.hash)).toMatchObject({
      code: "NOT_READ_YET",
      blockNumber: height,
    });
    api.isDataApiBehind = false;
  });

  it("names a token that nobody listed also where its block had too many to record each", async () => {
    const { chain } = bench;
    const contract = parseAddress(`0x${"7c".repeat(20)}`);
    const sent = { contract, from: STRANGER, units: 5n };
    const [arrived, nothing, elsewhere] = [1, 2, 3].map(() => chain.payment(STRANGER, HOT, 1n));
    api.logged.set(arrived?.hash ?? "", [
      { ...sent, to: HOT },
      { ...sent, to: alice },
    ]);
    api.logged.set(nothing?.hash ?? "", [{ ...sent, to: alice, units: 0n }]);
    api.logged.set(elsewhere?.hash ?? "", [{ ...sent, to: HOT }]);
    chain.mine([arrived, nothing, elsewhere].flatMap((one) => one ?? []));
    await bench.caughtUp();
    const told = await api.explain(arrived?.hash ?? "");
    expect(told.code).toBe("TOKEN_NOT_CREDITED");
    expect(told.message).toContain(contract);
    expect((await api.explain(nothing?.hash ?? "")).code).toBe("NOT_OURS");
    expect((await api.explain(elsewhere?.hash ?? "")).code).toBe("NOT_OURS");
  });

  it("names what holds the watcher up", async () => {
    await api.running.stop();
    const payment = bench.chain.payment(STRANGER, alice, 9n);
    bench.chain.mine([payment]);
    expect(await api.explain(payment.hash)).toMatchObject({ code: "NOT_READ_YET" });
    await recordIncident(bench.ledger.database, {
      kind: "PARENT_MISMATCH",
      height: 5,
      message: "block 5 does not follow",
      details: {},
    });
    const halted = await api.explain(payment.hash);
    expect(halted.code).toBe("HALTED");
    expect(halted.message).toContain("block 5 does not follow");
    await resumeCrediting(bench.ledger.database, "test");
    api.running = bench.start();
    await bench.caughtUp();
    expect(await api.explain(payment.hash)).toMatchObject({ code: "CONFIRMING" });
  });

  it("blames the node where the node does not answer", async () => {
    api.isNodeDown = true;
    const { status, body } = await api.get(`/v1/deposits/explain?txHash=${hashOf("7")}`);
    api.isNodeDown = false;
    const message = "the node or the Data API cannot be asked at the moment";
    expect([status, body]).toEqual([503, { code: "UNAVAILABLE", message, details: {} }]);
  });

  describe("passes on what the node or the Data API says of itself", () => {
    const message = "the node or the Data API does not tell at the moment: ";
    /** Asked of a transaction that made no deposit. */
    async function refusalOf(refuse: () => void) {
      const { hash } = bench.chain.mine([bench.chain.payment(STRANGER, HOT, 1n)]);
      await bench.caughtUp();
      const txHash = bench.chain.blocks.find((one) => one.hash === hash)?.transactions[0]?.hash;
      refuse();
      const { status, body } = await api.get(`/v1/deposits/explain?txHash=${txHash}`);
      [api.dataApiRefusal, api.receiptRefusal] = [undefined, undefined];
      return [status, body.code, body.message];
    }

    it.each([
      [-32002, "request timed out"],
      [-32003, "response too large"],
      [-32005, "too many large answers are asked for at once"],
    ])("%i", async (rpcCode, words) => {
      const method = "eth_getTransactionReceipt";
      const refusal = new RpcError(words, { rpcCode, method });
      expect(await refusalOf(() => (api.receiptRefusal = refusal))).toEqual([
        503,
        "UNAVAILABLE",
        `${message}${method}: ${words}`,
      ]);
    });

    it.each([
      [105, 503],
      [110, 503],
      [209, 503],
      // It is of this program's own question.
      [200, 500],
    ])("number %i", async (rosettaCode, status) => {
      const words = "/block: as the list of errors has it";
      const told = await refusalOf(() => {
        api.dataApiRefusal = new DataApiError("DATA_API_ERROR", words, {
          details: { rosettaCode },
        });
      });
      const [code, said] = status === 503 ? ["UNAVAILABLE", `${message}${words}`] : ["INTERNAL"];
      expect(told).toEqual([status, code, said ?? "an unexpected fault; see the log"]);
    });
  });

  it("does not say whose a transaction was of a block that the Data API has no more", async () => {
    const { chain } = bench;
    const contract = parseAddress(`0x${"7d".repeat(20)}`);
    const [plain, claiming] = [chain.payment(STRANGER, HOT, 1n), chain.payment(STRANGER, HOT, 1n)];
    api.logged.set(claiming.hash, [{ contract, from: STRANGER, to: alice, units: 5n }]);
    const { height: blockNumber } = chain.mine([plain, claiming]);
    await bench.caughtUp();
    const details = { rosettaCode: 204 };
    api.dataApiRefusal = new DataApiError("DATA_API_ERROR", "/block: block pruned", { details });
    const found = await Promise.all([plain, claiming].map(({ hash }) => api.explain(hash)));
    api.dataApiRefusal = undefined;
    expect(found[0]).toMatchObject({ code: "BLOCK_DELETED", blockNumber });
    // The node has its logs.
    expect(found[1]).toMatchObject({ code: "TOKEN_NOT_CREDITED", blockNumber });
  });

  it("refuses what is no hash", async () => {
    for (const query of ["", "?txHash=", "?txHash=0x12", `?txHash=${hashOf("g")}`]) {
      const { status, body } = await api.get(`/v1/deposits/explain${query}`);
      expect([query, status, body.code]).toEqual([query, 422, "INVALID_FIELD"]);
    }
  });
});
