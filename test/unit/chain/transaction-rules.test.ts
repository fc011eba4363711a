/** The rules of a transaction: known answers, and that admission and execution agree. */
import { describe, expect, it } from "@jest/globals";
import * as fc from "fast-check";
import { effectiveGasPriceAtoken, type SignedTransaction } from "../../../chain/transaction.js";
import {
  executionFault,
  fundsFault,
  mostCostAtoken,
  replacementFault,
  staticFault,
} from "../../../chain/transaction-rules.js";
import { account, transfer } from "../mempool/support.js";

const SEED = Number(process.env["CAUSEWAY_TEST_SEED"] ?? 20_261_120);
console.log(`transaction-rules: seed ${SEED} (CAUSEWAY_TEST_SEED)`);

const FROM = account(1).address;
const LIMITS = { chainId: 6940n, maxTransactionGas: 4_000_000n };
const signed = transfer(account(1), 0);

/** A transaction with other fields; its bytes and signature are never looked at. */
function dynamic(changes: Partial<SignedTransaction>): SignedTransaction {
  return { ...signed, type: 2, ...changes };
}

describe("a transaction", () => {
  it("may cost gas limit x fee cap + value, whatever its price is", () => {
    // EIP-1559: max_fee_per_gas 2^200, of which 1 is paid.
    const tx = dynamic({ maxFeePerGasAtoken: 2n ** 200n, maxPriorityFeePerGasAtoken: 1n });
    expect(mostCostAtoken(tx)).toBe(21_000n * 2n ** 200n + 1n);
    expect(effectiveGasPriceAtoken(tx)).toBe(1n);
  });

  it("is refused by the first rule that it breaks, in geth's order", () => {
    const codeOf = (changes: Partial<SignedTransaction>) =>
      staticFault(dynamic(changes), LIMITS)?.code;
    expect(codeOf({})).toBeUndefined();
    expect(codeOf({ chainId: 1n })).toBe("INVALID_CHAIN_ID");
    expect(codeOf({ nonce: 2n ** 64n - 1n })).toBe("NONCE_TOO_HIGH");
    expect(codeOf({ nonce: 2n ** 64n - 2n })).toBeUndefined();
    expect(codeOf({ gasLimit: 4_000_000n })).toBeUndefined();
    expect(codeOf({ gasLimit: 4_000_001n, maxPriorityFeePerGasAtoken: 11n })).toBe(
      "GAS_LIMIT_EXCEEDED",
    );
    expect(codeOf({ gasLimit: 20_999n, maxPriorityFeePerGasAtoken: 11n })).toBe(
      "TIP_ABOVE_FEE_CAP",
    );
    expect(codeOf({ gasLimit: 20_999n })).toBe("INTRINSIC_GAS_TOO_LOW");
    const creation = { to: undefined, data: new Uint8Array(49_153), gasLimit: 4_000_000n };
    expect(codeOf(creation)).toBe("INITCODE_TOO_LARGE");
  });

  it("is executed next only with its nonce, from an account without code that can pay", () => {
    const at = (nonce: bigint, balanceAtoken: bigint, hasCode = false) =>
      executionFault(signed, FROM, { nonce, balanceAtoken, hasCode })?.message;
    const cost = 210_001n;
    expect(at(0n, cost)).toBeUndefined();
    expect(at(0n, cost - 1n)).toBe(
      "insufficient funds for gas * price + value: balance 210000, tx cost 210001, overshot 1",
    );
    expect(at(1n, cost)).toBe("nonce too low: next nonce 1, tx nonce 0");
    expect(at(0n, cost, true)).toBe(`sender not an eoa: address ${FROM}`);
    const later = { ...signed, nonce: 2n };
    const account0 = { nonce: 0n, balanceAtoken: cost, hasCode: false };
    expect(executionFault(later, FROM, account0)?.message).toBe(
      "nonce too high: next nonce 0, tx nonce 2",
    );
  });

  it("replaces another for 10 % more, and never for less", () => {
    expect(replacementFault(109n, 100n)?.message).toBe("replacement transaction underpriced");
    expect(replacementFault(110n, 100n)).toBeUndefined();
    expect(replacementFault(1n, 1n)).toBeDefined();
    expect(replacementFault(2n, 1n)).toBeUndefined();
  });

  it("replaces another for a tenth that is rounded down, as MetaMask's speed-up reckons it", () => {
    // Its own example (util.test.ts of the transaction controller): 0x50fd51da becomes 0x5916a6d6.
    expect(replacementFault(0x5916_a6d6n, 0x50fd_51dan)).toBeUndefined();
    expect(replacementFault(0x5916_a6d5n, 0x50fd_51dan)).toBeDefined();
    expect(replacementFault(9n, 9n)).toBeDefined();
    expect(replacementFault(10n, 9n)).toBeUndefined();
  });
});

const fields = fc.record({
  tip: fc.bigInt({ min: 0n, max: 40n }),
  cap: fc.oneof(fc.bigInt({ min: 0n, max: 40n }), fc.bigInt({ min: 0n, max: 2n ** 220n })),
  gasLimit: fc.bigInt({ min: 20_990n, max: 4_000_010n }),
  valueAtoken: fc.bigInt({ min: 0n, max: 10n ** 9n }),
  /** Part of the gas limit that execution will use, in thousandths. */
  used: fc.bigInt({ min: 0n, max: 1_000n }),
});

describe("what may follow an account's earlier transactions", () => {
  it("can be executed once its nonce is due, however much gas those before it used", () => {
    let admittedCount = 0;
    const property = fc.property(
      fc.bigInt({ min: 0n, max: 10n ** 9n }),
      fc.array(fields, { maxLength: 12 }),
      (balanceAtoken, list) => {
        const admitted: { tx: SignedTransaction; used: bigint }[] = [];
        let earlierCostAtoken = 0n;
        for (const { tip, cap, gasLimit, valueAtoken, used } of list) {
          const tx = dynamic({
            nonce: BigInt(admitted.length),
            maxFeePerGasAtoken: cap,
            maxPriorityFeePerGasAtoken: tip,
            gasLimit,
            valueAtoken,
          });
          const costAtoken = mostCostAtoken(tx);
          if (staticFault(tx, LIMITS) !== undefined) continue;
          if (fundsFault({ balanceAtoken, costAtoken, earlierCostAtoken }) !== undefined) continue;
          earlierCostAtoken += costAtoken;
          admitted.push({ tx, used });
        }
        admittedCount += admitted.length;
        const sender = { nonce: 0n, balanceAtoken, hasCode: false };
        for (const { tx, used } of admitted) {
          expect(executionFault(tx, FROM, sender)).toBeUndefined();
          const more = ((tx.gasLimit - 21_000n) * used) / 1_000n;
          const feeAtoken = (21_000n + more) * effectiveGasPriceAtoken(tx);
          sender.balanceAtoken -= feeAtoken + tx.valueAtoken;
          sender.nonce++;
          expect(sender.balanceAtoken >= 0n).toBe(true);
        }
      },
    );
    fc.assert(property, { numRuns: 500, seed: SEED });
    expect(admittedCount).toBeGreaterThan(200);
  });
});
