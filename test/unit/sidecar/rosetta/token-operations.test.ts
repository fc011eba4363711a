import { describe, expect, it } from "@jest/globals";
import { AbiCoder, id, zeroPadValue } from "ethers";
import { parseAddress } from "../../../../chain/address.js";
import { parseJournaledBlock } from "../../../../rpc-client/journal-codec.js";
import { toRosettaBlock } from "../../../../sidecar/rosetta/operations.js";
import { toldTokens } from "../../../../sidecar/index/indexer.js";
import { tokenMovesOf } from "../../../../sidecar/rosetta/token-operations.js";
import {
  ALICE,
  BOB,
  change,
  CONTRACT,
  hashOf,
  transaction,
} from "../../../helpers/chains/journal-chain.js";
import { GOLD, REGISTRY, SILVER } from "../../../helpers/chains/known-tokens.js";

const ZERO = `0x${"00".repeat(20)}`;
const gold = GOLD.metadata.contractAddress.toLowerCase();
const silver = SILVER.metadata.contractAddress.toLowerCase();

interface LogSpec {
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
}

const word = (address: string) => zeroPadValue(address, 32);
const amount = (units: bigint) => AbiCoder.defaultAbiCoder().encode(["uint256"], [units]);

function transfer(from: string, to: string, units: bigint, address = gold): LogSpec {
  const topics = [id("Transfer(address,address,uint256)"), word(from), word(to)];
  return { address, topics, data: amount(units) };
}

const deposit = (to: string, units: bigint): LogSpec => ({
  address: gold,
  topics: [id("Deposit(address,uint256)"), word(to)],
  data: amount(units),
});

const withdrawal = (from: string, units: bigint): LogSpec => ({
  address: gold,
  topics: [id("Withdrawal(address,uint256)"), word(from)],
  data: amount(units),
});

/** No token has logged a Deposit or Withdrawal without its Transfer before. */
const never = () => false;

/** A block with one transaction per list of logs. */
function blockOf(...logs: LogSpec[][]) {
  return parseJournaledBlock({
    blockHash: hashOf("block"),
    blockNumber: "0x7",
    parentHash: hashOf("parent"),
    timestampMs: 1_790_000_000_000,
    transactions: logs.map((list, index) =>
      transaction(`tx ${index}`, index, {
        logs: list,
        changes: [change({ reason: "CALL", from: ALICE, to: CONTRACT, amount: 0n })],
      }),
    ),
    blockChanges: [],
    minted: "0x0",
    burned: "0x0",
  });
}

function movesOf(...logs: LogSpec[]): string[] {
  const [moves = []] = tokenMovesOf(blockOf(logs), REGISTRY, never).byTransaction;
  const name = (address: string | undefined) =>
    address === undefined ? "-" : address === ALICE ? "A" : address === BOB ? "B" : address;
  return moves.map(
    ({ type, token, from, to, units }) =>
      `${type} ${token.symbol} ${name(from)}>${name(to)} ${units}`,
  );
}

describe("the movements that logs tell", () => {
  it.each<[string, LogSpec[], string[]]>([
    ["a transfer", [transfer(ALICE, BOB, 5n)], ["ERC20_TRANSFER GOLD A>B 5"]],
    ["a mint", [transfer(ZERO, BOB, 5n)], ["ERC20_MINT GOLD ->B 5"]],
    ["a burn", [transfer(ALICE, ZERO, 5n)], ["ERC20_BURN GOLD A>- 5"]],
    ["nobody to nobody", [transfer(ZERO, ZERO, 5n)], []],
    ["to oneself", [transfer(ALICE, ALICE, 5n)], ["ERC20_TRANSFER GOLD A>A 5"]],
    ["of nothing", [transfer(ALICE, BOB, 0n)], ["ERC20_TRANSFER GOLD A>B 0"]],
    [
      "of the largest amount",
      [transfer(ALICE, BOB, 2n ** 256n - 1n)],
      [`ERC20_TRANSFER GOLD A>B ${2n ** 256n - 1n}`],
    ],
    ["a deposit", [deposit(BOB, 5n)], ["ERC20_MINT GOLD ->B 5"]],
    ["a withdrawal", [withdrawal(BOB, 5n)], ["ERC20_BURN GOLD B>- 5"]],
    [
      "a deposit with its transfer, in either order",
      [deposit(BOB, 5n), transfer(ZERO, BOB, 5n), transfer(ZERO, ALICE, 6n), deposit(ALICE, 6n)],
      ["ERC20_MINT GOLD ->B 5", "ERC20_MINT GOLD ->A 6"],
    ],
    [
      // No deposit of such a token is told by a Transfer: that one is of something else.
      "two deposits with one transfer",
      [deposit(BOB, 5n), transfer(ZERO, BOB, 5n), deposit(BOB, 5n)],
      ["ERC20_MINT GOLD ->B 5", "ERC20_MINT GOLD ->B 5", "ERC20_MINT GOLD ->B 5"],
    ],
    [
      "a withdrawal and as much sent to nobody, behind a deposit without a transfer",
      [deposit(BOB, 7n), withdrawal(BOB, 5n), transfer(BOB, ZERO, 5n)],
      ["ERC20_MINT GOLD ->B 7", "ERC20_BURN GOLD B>- 5", "ERC20_BURN GOLD B>- 5"],
    ],
    [
      "a deposit of nothing, which tells nothing of the token",
      [deposit(BOB, 0n), deposit(BOB, 5n), transfer(ZERO, BOB, 5n)],
      ["ERC20_MINT GOLD ->B 0", "ERC20_MINT GOLD ->B 5"],
    ],
    [
      "a withdrawal with another's transfer",
      [withdrawal(BOB, 5n), transfer(ALICE, ZERO, 5n)],
      ["ERC20_BURN GOLD B>- 5", "ERC20_BURN GOLD A>- 5"],
    ],
    [
      "a deposit with the transfer of another token",
      [deposit(BOB, 5n), transfer(ZERO, BOB, 5n, silver)],
      ["ERC20_MINT GOLD ->B 5", "ERC20_MINT SILVER ->B 5"],
    ],
    ["another contract's", [transfer(ALICE, BOB, 5n, CONTRACT)], []],
    [
      "another event",
      [{ ...transfer(ALICE, BOB, 5n), topics: [id("Approval(address,address,uint256)")] }],
      [],
    ],
    ["an anonymous log", [{ ...transfer(ALICE, BOB, 5n), topics: [] }], []],
  ])("%s", (_name, logs, expected) => {
    expect(movesOf(...logs)).toEqual(expected);
  });

  it.each<[string, LogSpec, RegExp]>([
    [
      "an indexed amount, as ERC-721 has it",
      { ...transfer(ALICE, BOB, 5n), topics: [...transfer(ALICE, BOB, 5n).topics, amount(5n)] },
      /4 topics, not 3/,
    ],
    [
      "a missing topic",
      { ...transfer(ALICE, BOB, 5n), topics: transfer(ALICE, BOB, 5n).topics.slice(0, 2) },
      /2 topics, not 3/,
    ],
    ["no data", { ...transfer(ALICE, BOB, 5n), data: "0x" }, /not one word/],
    ["two words", { ...deposit(BOB, 5n), data: `${amount(5n)}${"00".repeat(32)}` }, /not one word/],
    [
      "an account of more than 20 bytes",
      {
        ...transfer(ALICE, BOB, 5n),
        topics: [id("Transfer(address,address,uint256)"), `0x01${word(ALICE).slice(4)}`, word(BOB)],
      },
      /more than 20 bytes/,
    ],
  ])("are refused for %s, and the contract is named", (_name, log, reason) => {
    const { byTransaction, malformed, contracts } = tokenMovesOf(blockOf([log]), REGISTRY, never);
    expect(byTransaction).toEqual([[]]);
    expect([...malformed.keys()]).toEqual([gold]);
    expect([...malformed.values()][0]).toMatch(reason);
    expect([...contracts]).toEqual([gold]);
  });
});

describe("the operations of a block with tokens", () => {
  const block = blockOf([transfer(ALICE, BOB, 5n), transfer(ZERO, BOB, 2n, silver)]);
  const moves = tokenMovesOf(block, REGISTRY, never);
  const told = (quarantined: Record<string, number> = {}) =>
    toRosettaBlock(
      block,
      toldTokens({ height: 7, moves }, REGISTRY, (contract) => {
        const height = quarantined[contract];
        return height === undefined ? undefined : { height, reason: "lies" };
      }),
    );

  it("follow the native ones, a transfer as a related pair, a mint alone", () => {
    const operations = told().transactions[0]?.operations.slice(2);
    expect(operations).toMatchObject([
      {
        operation_identifier: { index: 2 },
        type: "ERC20_TRANSFER",
        account: { address: expect.stringMatching(new RegExp(ALICE, "i")) },
        amount: { value: "-5", currency: GOLD },
      },
      {
        operation_identifier: { index: 3 },
        related_operations: [{ index: 2 }],
        status: "SUCCESS",
        account: { address: expect.stringMatching(new RegExp(BOB, "i")) },
        amount: { value: "5", currency: GOLD },
      },
      {
        operation_identifier: { index: 4 },
        type: "ERC20_MINT",
        amount: { value: "2", currency: SILVER },
      },
    ]);
    expect(operations?.[2]?.related_operations).toBeUndefined();
    expect(told().metadata).toMatchObject({ accounts_changed: 2, quarantined: undefined });
  });

  it.each<[string, Record<string, number>, number, string[]]>([
    ["a token that was quarantined before", { [gold]: 3 }, 3, [GOLD.metadata.contractAddress]],
    ["a token that is quarantined here", { [silver]: 7 }, 4, [SILVER.metadata.contractAddress]],
    ["no token that will be quarantined", { [gold]: 8, [silver]: 9 }, 5, []],
  ])("leave out %s", (_name, quarantined, count, listed) => {
    const { transactions, metadata } = told(quarantined);
    expect(transactions[0]?.operations).toHaveLength(count);
    expect(metadata.quarantined ?? []).toEqual(listed);
  });

  it("name a token in the block where it is quarantined though it logged nothing", () => {
    const quiet = blockOf([]);
    const tokens = toldTokens(
      { height: 7, moves: tokenMovesOf(quiet, REGISTRY, never) },
      REGISTRY,
      (contract) => (contract === parseAddress(gold) ? { height: 7, reason: "x" } : undefined),
    );
    expect(tokens.leftOut).toEqual([gold]);
  });
});
