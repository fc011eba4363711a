import { describe, expect, it } from "@jest/globals";
import { parseAddress } from "../../../chain/address.js";
import { AddressPrefixes } from "../../../chain/address-prefixes.js";
import { CUT_OUT, scanBlockReply } from "../../../rpc-client/data-api/block-scan.js";
import { testAddress } from "../../helpers/chains/fake-chain.js";

const ours = parseAddress(`0xabcdef${"0".repeat(33)}1`);
const others = [testAddress(1), parseAddress(`${ours.slice(0, -1)}2`), testAddress(0xfedcba)];
const seed = 20_261_120;

const prefixes = new AddressPrefixes();
prefixes.add(ours);

/** Mulberry32: small, seeded, the same everywhere. */
function randomOf(start: number): (below: number) => number {
  let state = start;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

const random = randomOf(seed);
const pick = <T>(list: readonly T[]): T => {
  const value = list[random(list.length)];
  if (value === undefined) throw new Error("an empty list");
  return value;
};

/** Texts that a careless reader would trip over. */
const ODD_TEXTS = [
  "address",
  'address":"',
  "transactions",
  '"transactions":[',
  "{[]}",
  "}]},",
  "\\",
  '\\"',
  "\u0000 \u2028 \u{1f600} é",
  ours,
  `"address":"${ours}"`,
  `0x${"\\".repeat(40)}`,
  CUT_OUT,
  "",
];

/** Each letter in either case, as checksums have them. */
const mixedCase = (address: string) =>
  `0x${address.slice(2).replace(/[a-f]/g, (digit) => pick([digit, digit.toUpperCase()]))}`;

function randomOperation(index: number) {
  const address = mixedCase(random(12) === 0 ? ours : pick(others));
  return {
    operation_identifier: { index },
    related_operations: index > 0 && random(2) === 0 ? [{ index: index - 1 }] : undefined,
    type: pick(["CALL", "FEE", "ERC20_TRANSFER"]),
    account: random(9) === 0 ? { address, sub_account: { address: pick(ODD_TEXTS) } } : { address },
    amount: { value: String(random(1_000)), currency: { symbol: pick(["TOKEN", ...ODD_TEXTS]) } },
    metadata: random(6) === 0 ? { memo: pick(ODD_TEXTS), address: pick(ODD_TEXTS) } : undefined,
  };
}

function randomReply() {
  const transactions = Array.from({ length: random(6) }, () => ({
    transaction_identifier: { hash: pick(ODD_TEXTS) },
    operations: Array.from({ length: random(5) }, (_, index) => randomOperation(index)),
    metadata: random(3) === 0 ? { [pick(ODD_TEXTS)]: pick(ODD_TEXTS) } : undefined,
  }));
  const head = { metadata: { note: pick(ODD_TEXTS), transactions: [1] }, list: ["transactions"] };
  return { block: { ...head, transactions, timestamp: random(10) }, other: pick(ODD_TEXTS) };
}

describe("the scan of a block's reply", () => {
  it("finds what a JSON parser finds, whatever the texts say", () => {
    for (let round = 0; round < 1_000; round += 1) {
      const reply = randomReply();
      const scanned = scanBlockReply(Buffer.from(JSON.stringify(reply)));
      const plain: unknown = JSON.parse(JSON.stringify(reply.block.transactions));
      const read = Array.from({ length: scanned.transactionCount }, (_, position): unknown =>
        JSON.parse(scanned.transactionText(position)),
      );
      expect([seed, round, read]).toEqual([seed, round, plain]);
      const frame = { ...reply, block: { ...reply.block, transactions: [CUT_OUT] } };
      expect([seed, round, JSON.parse(scanned.frame)]).toEqual([seed, round, frame]);
      const isOurs = (address: string) => address === ours;
      const concerning = new Set(scanned.concerning(isOurs));
      expect([seed, round, scanned.concerning(isOurs, prefixes)]).toEqual([
        seed,
        round,
        [...concerning],
      ]);
      reply.block.transactions.forEach(({ operations }, position) => {
        const isNamed = operations.some(({ account }) => account.address.toLowerCase() === ours);
        // More than these may be named, never fewer.
        if (isNamed) expect([seed, round, concerning.has(position)]).toEqual([seed, round, true]);
      });
    }
  });

  it("passes over what does not concern the reader", () => {
    const operation = (address: string) => ({ account: { address }, metadata: { to: ours } });
    const transactions = [[others[0]], [others[1], ours], [], [others[2]], [ours]].map((list) => ({
      operations: list.map((address) => operation(address ?? "")),
    }));
    const reply = { block: { block_identifier: {}, transactions } };
    const scanned = scanBlockReply(Buffer.from(JSON.stringify(reply)));
    expect(scanned.concerning((address) => address === ours)).toEqual([1, 4]);
    expect(scanned.concerning(() => false)).toEqual([]);
    expect(scanned).toMatchObject({ transactionCount: 5, accountCount: 5 });
  });

  it("names a transaction that spells its accounts in an unusual way", () => {
    const text = (operations: string) =>
      `{"block":{"transactions":[{"operations":[]},{"operations":${operations}}]}}`;
    for (const operations of [
      `[{"account":{"\\u0061ddress":"${ours}"}}]`,
      `[{"account":{"address":"\\u0030${ours.slice(1)}"}}]`,
      `[{"account":{"address": "${ours}"}}]`,
      `[{"account":{"address" :"${ours}"}}]`,
      '[{"account":{"address":"addr1qqqsyqcyq5rqwzqfpg9scrgwpugpzysn"}}]',
      '[{"account":{"address":null}}]',
    ]) {
      const scanned = scanBlockReply(Buffer.from(text(operations)));
      expect([operations, scanned.concerning(() => false)]).toEqual([operations, [1]]);
    }
  });

  it("refuses bytes that break off anywhere", () => {
    const reply = { block: { transactions: [{ operations: [{ account: { address: ours } }] }] } };
    const body = Buffer.from(JSON.stringify(reply));
    const listEnd = body.lastIndexOf("]") + 1;
    for (let length = 0; length < listEnd; length += 1) {
      expect(() => scanBlockReply(body.subarray(0, length))).toThrow(
        expect.objectContaining({ code: "BAD_ANSWER" }),
      );
    }
    expect(scanBlockReply(body).transactionCount).toBe(1);
  });
});
