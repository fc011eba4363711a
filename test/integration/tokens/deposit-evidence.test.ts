/** The evidence of a token's deposit, and what is said of a transaction that brought none. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Interface } from "ethers";
import type { Address } from "../../../chain/address.js";
import { type Hash32, parseHash32 } from "../../../chain/hex.js";
import { explainAssets } from "../../../deposit-watcher/api/asset-explanations.js";
import { collectEvidence } from "../../../deposit-watcher/api/evidence.js";
import { explainTransaction } from "../../../deposit-watcher/api/explanation.js";
import type { BlockSource } from "../../../deposit-watcher/reading/block-source.js";
import { depositIdsOfTransaction } from "../../../ledger/deposits/deposit-evidence.js";
import { customerBalances, findDeposit } from "../../../ledger/deposits/deposit-queries.js";
import { parseCustomerId } from "../../../ledger/journal/accounts.js";
import { WALLET } from "../../helpers/exchange/house.js";
import { compileFixture } from "../../helpers/contracts/solidity.js";
import { callOf, contractAt, depositKey, ISSUER, TokenBench, TOKENS } from "./token-bench.js";

let bench: TokenBench;
let alice: Address;

beforeAll(async () => {
  bench = await TokenBench.open();
  alice = await bench.register("alice");
  await bench.watch();
  await bench.deploy();
  await bench.mine([
    callOf("PlainToken", "mint", [ISSUER.address, 1_000_000n]),
    callOf("FeeToken", "mint", [ISSUER.address, 1_000_000n]),
    callOf("MoodyToken", "setMood", [3n]),
  ]);
});

afterAll(() => bench.close());

describe("a deposit of a token", () => {
  /** Its evidence, as the API collects it. */
  async function evidenceOf(
    hash: Hash32,
    told: {
      readonly source?: BlockSource;
      readonly tokenBalances?: typeof bench.node.tokenBalances;
      readonly tokenCodes?: typeof bench.node.tokenCodes;
      readonly id?: string;
    } = {},
  ) {
    const {
      ids: [first = ""],
    } = await depositIdsOfTransaction(bench.database, hash);
    const { id = first, source = bench.source, tokenBalances, tokenCodes } = told;
    const deposit = await findDeposit(bench.database, id);
    if (deposit === undefined) throw new Error("no deposit");
    const { database } = bench;
    const node = {
      ...bench.node,
      ...(tokenBalances === undefined ? {} : { tokenBalances }),
      ...(tokenCodes === undefined ? {} : { tokenCodes }),
    };
    const contractOf = (asset: string) =>
      TOKENS.find(({ symbol }) => symbol === asset)?.contractAddress;
    const { signal } = new AbortController();
    return collectEvidence({ database, node, source, contractOf }, deposit, { signal });
  }

  async function explain(hash: Hash32) {
    return explainTransaction(explanationParts(hash), hash, new AbortController());
  }

  function explanationParts(hash: Hash32) {
    const { database, node, source } = bench;
    const known = {
      walletFrom: (address: Address) => (address === WALLET ? 0 : undefined),
      assetOf: () => undefined,
      customerOf: (address: Address) => (address === alice ? parseCustomerId("alice") : undefined),
    };
    const { signal } = new AbortController();
    const transactionStatus = async () => {
      const receipt = await node.getTransactionReceipt(hash, { signal });
      if (receipt === undefined) throw new Error("not mined");
      const { height, transactionIndex: index } = receipt;
      return { status: "included" as const, height, index };
    };
    return { database, source, watched: known, node: { ...node, transactionStatus } };
  }

  it("has its evidence in the token's own balances, operation or log", async () => {
    const [served = "0x" as Hash32, leftOut = "0x" as Hash32] = await bench.mine([
      callOf("PlainToken", "transfer", [alice, 61n]),
      callOf("FeeToken", "transfer", [alice, 200n]),
    ]);
    await bench.mine([]);
    await bench.caughtUp();
    const one = await evidenceOf(served);
    expect(one.chainFault).toBeUndefined();
    expect(one.chain).toMatchObject({ operationsUnits: 61n, agrees: true });
    const two = await evidenceOf(leftOut);
    expect(two.chain).toMatchObject({ operationsUnits: 200n, agrees: true });
    const chain = two.chain;
    expect((chain?.balanceAfterUnits ?? 0n) - (chain?.balanceBeforeUnits ?? 0n)).toBe(198n);
    expect(await explain(leftOut)).toMatchObject({ code: "CREDITED" });
    // What the books have, and the balance never did: a claim alone is no evidence.
    for (const hash of [served, leftOut]) {
      const still = await evidenceOf(hash, {
        tokenBalances: async (queries) => queries.map(() => 1_000n),
      });
      expect(still.chain).toMatchObject({ agrees: false });
      expect(still.differences.map(({ code }) => code)).toEqual(["TOKEN_CONTRADICTED"]);
    }
    // Nothing is proven by a contract that does not tell, and nothing contradicted.
    const silent = await evidenceOf(served, { tokenBalances: async () => [0n, undefined] });
    expect([silent.chain, silent.differences]).toMatchObject([
      undefined,
      [{ code: "TOKEN_SILENT", nextStep: expect.stringContaining("Nothing is contradicted") }],
    ]);
    const other = parseHash32(`0x${"0c".repeat(32)}`);
    const tokenCodes = async () => [{ codeHash: other, implementation: other }];
    const changed = await evidenceOf(served, { tokenCodes });
    expect(changed.chain?.agrees).toBe(true);
    expect(changed.differences).toMatchObject([
      {
        code: "CODE_NOT_ACCEPTED",
        nextStep: expect.stringContaining("causeway tokens state"),
      },
    ]);
  });

  it("has it in the token's logs where the Data API has its operation no more, or elsewhere", async () => {
    const [served = "0x" as Hash32, twice = "0x" as Hash32] = await bench.mine([
      callOf("PlainToken", "transfer", [alice, 71n]),
      callOf("PlainToken", "transferMany", [
        [alice, alice],
        [72n, 73n],
      ]),
    ]);
    await bench.mine([]);
    await bench.caughtUp();
    // As behind a list of tokens without this one: its operations are gone, others have its indexes.
    const without = {
      block: async (...asked: Parameters<typeof bench.source.block>) => {
        const block = await bench.source.block(...asked);
        return (
          block && {
            ...block,
            transactions: async (...wanted: Parameters<typeof block.transactions>) =>
              (await block.transactions(...wanted)).map((each) => ({
                ...each,
                operations: each.operations.filter(({ isNative }) => isNative),
              })),
          }
        );
      },
    };
    expect((await evidenceOf(served, { source: without })).chain).toMatchObject({
      operation: { type: "ERC20_TRANSFER", amountAtoken: 71n },
      agrees: true,
    });
    for (const id of (await depositIdsOfTransaction(bench.database, twice)).ids) {
      const { chain } = await evidenceOf(twice, { source: without, id });
      expect([id, chain?.agrees]).toEqual([id, true]);
    }
    const tokenBalances: typeof bench.node.tokenBalances = async () => [0n, 70n];
    const still = await evidenceOf(served, { source: without, tokenBalances });
    expect(still.chain).toMatchObject({ agrees: false });
  });

  it("agrees, too, where more came than the token said, which is booked beside it", async () => {
    const mood = (one: bigint) => callOf("MoodyToken", "setMood", [one]);
    const [said = "0x" as Hash32] = await bench.mine([
      callOf("MoodyToken", "mint", [alice, 10n]),
      callOf("MoodyToken", "mint", [ISSUER.address, 50n]),
      mood(4n),
      callOf("MoodyToken", "transfer", [alice, 50n]),
      mood(3n),
    ]);
    await bench.mine([]);
    await bench.caughtUp();
    expect((await evidenceOf(said)).chain).toMatchObject({ operationsUnits: 10n, agrees: true });
    for (const units of [10n, 59n, 61n]) {
      const other = await evidenceOf(said, { tokenBalances: async () => [0n, units] });
      expect([units, other.chain?.agrees]).toEqual([units, false]);
    }
    const more = await evidenceOf(said, { tokenBalances: async () => [0n, 61n] });
    expect(more.differences).toMatchObject([{ code: "SURPLUS_DIFFERS" }]);
  });

  it("agrees, too, where the token says besides that some left, and none did", async () => {
    // The deposit address pays for its own transaction.
    await bench.mine([{ to: alice, value: 10n ** 18n }]);
    const [said = "0x" as Hash32] = await bench.mine([
      callOf("MoodyToken", "mint", [alice, 10n]),
      { ...callOf("MoodyToken", "transfer", [ISSUER.address, 4n]), from: depositKey(0) },
    ]);
    await bench.mine([]);
    await bench.caughtUp();
    expect((await evidenceOf(said)).chain).toMatchObject({ operationsUnits: 6n, agrees: true });
    for (const units of [9n, 11n, 14n]) {
      const other = await evidenceOf(said, { tokenBalances: async () => [0n, units] });
      expect([units, other.chain?.agrees]).toEqual([units, false]);
    }
  });

  it("is explained where there is none", async () => {
    const [unknown = "0x" as Hash32, lie = "0x" as Hash32] = await bench.mine([
      callOf("Forger", "fungible", [ISSUER.address, alice, 1n]),
      callOf("MoodyToken", "transfer", [alice, 1n]),
    ]);
    await bench.mine([]);
    await bench.caughtUp();
    expect(await explain(unknown)).toMatchObject({ code: "TOKEN_NOT_CREDITED" });
    expect(await explain(lie)).toMatchObject({ code: "TOKEN_NOT_ARRIVED" });
  });

  it("is explained asset by asset where one transaction brings coins and several tokens", async () => {
    const data = compileFixture("Bundle.sol")["Bundle"]?.bytecode ?? "0x";
    const { signal } = new AbortController();
    const [created = "0x" as Hash32] = await bench.mine([{ data }]);
    const receipt = await bench.node.getTransactionReceipt(created, { signal });
    const bundle = receipt?.contractAddress ?? ("0x" as Address);
    const names = ["PlainToken", "FeeToken", "StrangeToken", "MoodyToken"] as const;
    await bench.mine([
      ...names.slice(0, 3).map((name) => callOf(name, "mint", [bundle, 1_000n])),
      callOf("MoodyToken", "setMood", [3n]),
    ]);
    const pay = new Interface(["function pay(address,address[],uint256)"]);
    const paid = pay.encodeFunctionData("pay", [alice, names.map(contractAt), 200n]);
    const [hash = "0x" as Hash32] = await bench.mine([{ to: bundle, data: paid, value: 5n }]);
    await bench.mine([]);
    await bench.caughtUp();
    const parts = explanationParts(hash);
    const explained = await explainTransaction(parts, hash, { signal });
    const assets = await explainAssets(parts, hash, explained, { signal });
    expect(assets.map(({ asset, contract, code }) => [asset ?? contract, code])).toEqual([
      ["TOKEN", "CREDITED"],
      ["PLAIN", "CREDITED"],
      ["FEE", "CREDITED"],
      ["FEE", "TOKEN_NOT_ARRIVED"],
      [contractAt("StrangeToken"), "TOKEN_NOT_CREDITED"],
      ["MOODY", "TOKEN_NOT_ARRIVED"],
    ]);
  });

  it("is pending among the balances before its token has one", async () => {
    const zoe = await bench.register("zoe");
    await bench.mine([callOf("PlainToken", "mint", [zoe, 70n])]);
    await bench.caughtUp();
    const balances = () => customerBalances(bench.database, parseCustomerId("zoe"));
    const none = { availableUnits: 0n, heldUnits: 0n, pendingUnits: 0n };
    const coins = { ...none, asset: "TOKEN" };
    expect(await balances()).toEqual([{ ...none, asset: "PLAIN", pendingUnits: 70n }, coins]);
    await bench.mine([]);
    await bench.caughtUp();
    expect(await balances()).toEqual([{ ...none, asset: "PLAIN", availableUnits: 70n }, coins]);
  });
});
