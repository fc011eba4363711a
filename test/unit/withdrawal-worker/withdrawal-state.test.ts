/** The table of what a node's answers mean, and the allowed steps of a withdrawal. */
import { describe, expect, it } from "@jest/globals";
import type { Hash32 } from "../../../chain/hex.js";
import {
  isAllowedStep,
  isFinalStatus,
  statusesBefore,
  WITHDRAWAL_STATUSES,
} from "../../../ledger/requests/withdrawal-status.js";
import { RpcError } from "../../../rpc-client/errors.js";
import {
  meaningOfEstimate,
  meaningOfSend,
  verdictOnConsumedNonce,
} from "../../../withdrawal-worker/withdrawal-state.js";

const hash = `0x${"11".repeat(32)}` as Hash32;
const otherHash = `0x${"22".repeat(32)}` as Hash32;
const refusal = (message: string, rpcCode = -32000) =>
  new RpcError(message, { rpcCode, method: "eth_sendRawTransaction" });

describe("an answer to a raw transaction", () => {
  const table: readonly (readonly [string, string])[] = [
    ["already known", "sent"],
    ["Tx already exists in cache", "sent"],
    ["nonce too low: next nonce 8, tx nonce 5", "nonce-consumed"],
    ["invalid nonce; got 1688, expected 1689: invalid sequence", "nonce-consumed"],
    ["invalid nonce; got 12, expected 9", "gap"],
    ["nonce too high: next nonce 8, tx nonce 90", "gap"],
    ["replacement transaction underpriced", "conflict"],
    ["insufficient funds for gas * price + value: balance 1, tx cost 2, overshot 1", "no-funds"],
    ["transaction underpriced", "price-too-low"],
    ["intrinsic gas too low: gas 20000, minimum needed 21000", "gas-too-low"],
    ["exceeds block gas limit", "gas-too-high"],
    ["txpool is full", "unknown"],
    ["account limit exceeded", "unknown"],
    ["node is halted", "unknown"],
    ["something nobody wrote down", "unknown"],
    ["invalid sender: invalid chain id for signer: have 1 want 6940", "node-broken"],
  ];
  for (const [message, kind] of table) {
    it(`"${message}" means ${kind}`, () => {
      expect(meaningOfSend({ outcome: "refused", error: refusal(message) }, hash).kind).toBe(kind);
    });
  }

  it("with our hash means sent, with another hash that the node is broken", () => {
    expect(meaningOfSend({ outcome: "accepted", hash }, hash).kind).toBe("sent");
    expect(meaningOfSend({ outcome: "accepted", hash: otherHash }, hash).kind).toBe("node-broken");
  });

  it("names the price and the gas that the node wants", () => {
    const price = refusal(
      "transaction gas price below minimum: gas tip cap 1, minimum needed 25000000",
    );
    expect(meaningOfSend({ outcome: "refused", error: price }, hash)).toEqual({
      kind: "price-too-low",
      neededPriceAtoken: 25_000_000n,
    });
    const gas = refusal("intrinsic gas too low: gas 20000, minimum needed 21000");
    expect(meaningOfSend({ outcome: "refused", error: gas }, hash)).toEqual({
      kind: "gas-too-low",
      neededGas: 21_000n,
    });
  });
});

const kindOf = (message: string, rpcCode = -32000) =>
  meaningOfEstimate({ ok: false, error: refusal(message, rpcCode) }).kind;

describe("an estimate", () => {
  it("that reverts is refused by the destination", () => {
    expect(kindOf("execution reverted", 3)).toBe("refused-by-destination");
    expect(kindOf("execution reverted: no thanks")).toBe("refused-by-destination");
    expect(kindOf("invalid opcode: INVALID")).toBe("refused-by-destination");
    expect(kindOf("gas required exceeds allowance (25000000)")).toBe("refused-by-destination");
  });

  it("that the wallet cannot cover, or that is not understood, never fails a withdrawal", () => {
    expect(kindOf("insufficient funds for transfer")).toBe("no-funds");
    expect(kindOf("insufficient balance for transfer")).toBe("no-funds");
    expect(kindOf("header not found")).toBe("unknown");
    expect(kindOf("internal error", -32603)).toBe("unknown");
    expect(kindOf("request timed out")).toBe("unknown");
    expect(kindOf("")).toBe("unknown");
  });
});

describe("a consumed nonce", () => {
  const evidence = {
    hasReceipt: false,
    receiptsHeight: 10,
    nonceHeight: 10,
    missingMs: 5_000,
    patienceMs: 5_000,
  };

  it("with a receipt is mined, without one freezes after patience, never anything else", () => {
    expect(verdictOnConsumedNonce({ ...evidence, hasReceipt: true })).toBe("mined");
    expect(verdictOnConsumedNonce(evidence)).toBe("freeze");
    expect(verdictOnConsumedNonce({ ...evidence, missingMs: 4_999 })).toBe("look-again");
  });

  it("is not judged by a node below the height where the nonce was read", () => {
    expect(verdictOnConsumedNonce({ ...evidence, receiptsHeight: 9 })).toBe("look-again");
  });
});

describe("the steps of a withdrawal", () => {
  it("end in exactly settled, failed, rejected and cancelled", () => {
    expect(WITHDRAWAL_STATUSES.filter(isFinalStatus)).toEqual([
      "settled",
      "failed",
      "rejected",
      "cancelled",
    ]);
  });

  it("lead to settled only from included, and never back before a signature without a freeze", () => {
    expect(statusesBefore("settled")).toEqual(["included"]);
    for (const from of ["signed", "broadcast", "included"] as const) {
      expect(isAllowedStep(from, "accepted")).toBe(false);
      expect(isAllowedStep(from, "slotted")).toBe(false);
      // By a transfer of nothing that was mined in the payment's place.
      expect(isAllowedStep(from, "cancelled")).toBe(from === "included");
    }
    expect(statusesBefore("accepted")).toEqual(["pending_approval", "frozen"]);
  });

  it("let a withdrawal fail only before its nonce or after its receipt", () => {
    expect(statusesBefore("failed")).toEqual(["pending_approval", "accepted", "included"]);
  });
});
