/** What a transaction may have paid, by its movements of value. */
import { randomInt } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import type { Address } from "../../../chain/address.js";
import type { BalanceChange } from "../../../chain/balance-change.js";
import { keccak256Hex } from "../../../chain/hashes.js";
import { paidIn } from "../../../deposit-watcher/deposit-match.js";
import {
  coinMovements,
  mayBePaidBy,
  mayHavePaid,
  tokenMovements,
} from "../../../ledger/requests/possible-payments.js";
import {
  useOfSlot,
  type WalletTransaction,
} from "../../../ledger/withdrawals/operator-decisions.js";
import type { PaidTerms } from "../../../ledger/requests/payment-terms.js";
import { testAddress } from "../../helpers/chains/fake-chain.js";
import { createRandom } from "../../helpers/random.js";

const [ALICE, BOB, WALLET, CONTRACT] = [1, 2, 3, 4].map(testAddress) as [
  Address,
  Address,
  Address,
  Address,
];

const coins = (
  to: Address | undefined,
  amountAtoken: bigint,
  fields: Partial<BalanceChange> = {},
) => ({
  reason: "CALL" as const,
  from: WALLET,
  to,
  amountAtoken,
  effective: true,
  tracePath: "",
  ...fields,
});

const textOf = ({ destination, contract, amountUnits }: PaidTerms) =>
  `${destination} ${contract ?? ""} ${amountUnits}`;

describe("what a transaction may have paid", () => {
  it("is each movement of coins, from whomever, but no fee, nothing undone and nothing burned", () => {
    const changes = [
      coins(BOB, 9n, { reason: "FEE" }),
      coins(CONTRACT, 5n),
      coins(ALICE, 2n, { from: CONTRACT, tracePath: "0" }),
      coins(BOB, 3n, { from: CONTRACT, tracePath: "1", reason: "SELFDESTRUCT" }),
      coins(BOB, 4n, { effective: false }),
      coins(undefined, 6n),
      coins(BOB, 0n),
    ];
    expect(mayHavePaid(coinMovements(changes)).map(textOf)).toEqual([
      `${CONTRACT}  5`,
      `${ALICE}  2`,
      `${BOB}  3`,
    ]);
  });

  it("is the sum to one address, of one asset alone", () => {
    const movements = [
      ...coinMovements([coins(ALICE, 2n), coins(ALICE, 3n)]),
      ...tokenMovements([
        { contract: CONTRACT, from: BOB, to: ALICE, units: 7n },
        { contract: CONTRACT, from: undefined, to: ALICE, units: 8n },
        { contract: CONTRACT, from: WALLET, to: undefined, units: 1n },
      ]),
    ];
    const expected = [`${ALICE}  2`, `${ALICE}  3`, `${ALICE}  5`].concat(
      [7, 8, 15].map((units) => `${ALICE} ${CONTRACT} ${units}`),
    );
    expect(new Set(mayHavePaid(movements).map(textOf))).toEqual(new Set(expected));
  });

  it("is what its bytes say, once, and not added to what it moved", () => {
    const said = { destination: ALICE, amountUnits: 7n, contract: CONTRACT };
    const logged = tokenMovements([{ contract: CONTRACT, from: WALLET, to: ALICE, units: 7n }]);
    expect(mayHavePaid(logged, said).map(textOf)).toEqual([textOf(said)]);
    expect(mayHavePaid([], said).map(textOf)).toEqual([textOf(said)]);
    expect(mayHavePaid([], { ...said, amountUnits: 0n })).toEqual([]);
  });

  it("is no sum that no request can ask for", () => {
    const most = 2n ** 256n - 1n;
    const logged = [1, 2].map(() => ({ contract: CONTRACT, from: BOB, to: ALICE, units: most }));
    expect(mayHavePaid(tokenMovements(logged)).map(textOf)).toEqual([
      `${ALICE} ${CONTRACT} ${most}`,
    ]);
  });

  it("is found for every request that one movement or all to its address have paid, and no other", () => {
    const seed = Number(process.env["SEED"] ?? randomInt(2 ** 31));
    const random = createRandom(seed);
    const assets = [{}, { contract: CONTRACT }, { contract: testAddress(5) }];
    for (let run = 0; run < 300; run += 1) {
      const people = Array.from({ length: 1 + random.integer(4) }, (_, n) => testAddress(10 + n));
      const anyTerms = (bound: number): PaidTerms => ({
        destination: random.pick(people),
        contract: undefined,
        ...random.pick(assets),
        amountUnits: BigInt(random.integer(bound)),
      });
      const movements = Array.from({ length: random.integer(12) }, () => anyTerms(6));
      const paid = mayHavePaid(movements);
      for (let asked = 0; asked < 20; asked += 1) {
        const request = { ...anyTerms(20) };
        const own = movements
          .filter((one) => one.destination === request.destination)
          .filter((one) => one.contract === request.contract)
          .map(({ amountUnits }) => amountUnits);
        const sum = own.reduce((total, units) => total + units, 0n);
        const isPaid = request.amountUnits > 0n && [...own, sum].includes(request.amountUnits);
        expect([seed, run, mayBePaidBy(request, { paid })]).toEqual([seed, run, isPaid]);
      }
    }
  });

  it("is no cancellation where a wallet that has code has called itself and paid others", () => {
    const slot = { wallet: WALLET, destination: ALICE, amountUnits: 5n };
    const call: WalletTransaction = {
      hash: keccak256Hex(Buffer.from("a call")),
      height: 1,
      nonce: 0n,
      to: WALLET,
      isCosmos: false,
      isSuccess: true,
      valueAtoken: 0n,
      transfer: undefined,
      taken: [],
      paid: [],
      gasUsed: 21_000n,
      gasPriceAtoken: 1n,
    };
    expect(useOfSlot(slot, call)).toBe("cancelled");
    expect(useOfSlot(slot, { ...call, paid: [slot] })).toBeUndefined();
  });

  it("is the same by operations as the watcher reads them", () => {
    const hash = keccak256Hex(Buffer.from("a transaction"));
    const operation = (index: number, fields: object) => ({
      index,
      type: "CALL",
      status: "SUCCESS" as const,
      address: ALICE,
      isNative: true,
      amountAtoken: 1n,
      relatedIndexes: [],
      ...fields,
    });
    const operations = [
      operation(0, { type: "FEE", address: BOB }),
      operation(1, { address: WALLET, amountAtoken: -5n }),
      operation(2, { amountAtoken: 2n }),
      operation(3, { amountAtoken: 3n }),
      operation(4, { status: "FAILURE", amountAtoken: 4n }),
      operation(5, { isNative: false, contract: CONTRACT, amountAtoken: 6n }),
      // A claim on stake, which nobody holds.
      operation(6, { isNative: false, amountAtoken: 7n }),
    ];
    const transactions = [{ hash, index: 0, operations }];
    const paid = paidIn([{ height: 1, hash, transactions }], hash);
    const expected = [`${ALICE}  2`, `${ALICE}  3`, `${ALICE}  5`, `${ALICE} ${CONTRACT} 6`];
    expect(new Set(paid.map(textOf))).toEqual(new Set(expected));
    expect(paidIn([], hash)).toEqual([]);
  });
});
