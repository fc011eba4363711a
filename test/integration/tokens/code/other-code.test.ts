/** A person's word about a token's code while its contract goes on changing: it is about what was told. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import {
  readTokenStates,
  pausedAfterSql,
  type TokenState,
} from "../../../../ledger/assets/token-state.js";
import { listEvents } from "../../../helpers/events.js";
import { until } from "../../../helpers/until.js";
import { compileFixture } from "../../../helpers/contracts/solidity.js";
import { customerBalances, listDeposits } from "../../../../ledger/deposits/deposit-queries.js";
import { parseCustomerId } from "../../../../ledger/journal/accounts.js";
import {
  callOf,
  type ContractName,
  contractAt,
  createdAt,
  ISSUER,
  TokenBench,
} from "../token-bench.js";

let bench: TokenBench;

beforeEach(async () => {
  bench = await TokenBench.open();
  await bench.watch();
  await bench.deploy();
  await stateWhere(({ codeHash }) => codeHash !== undefined, "its code is pinned");
});
afterEach(() => bench.close());

async function stateOf(): Promise<TokenState | undefined> {
  return (await readTokenStates(bench.database)).get("PROXY");
}

async function stateWhere(isSo: (state: TokenState) => boolean, what: string): Promise<void> {
  await until(
    async () => {
      const state = await stateOf();
      return state !== undefined && isSo(state);
    },
    { timeoutMs: 20_000, what },
  );
}

async function upgrade(name: ContractName): Promise<void> {
  await bench.mine([callOf("UpgradableProxy", "upgradeTo", [contractAt(name)])]);
  await bench.caughtUp();
}

const accept = () => bench.accept("PROXY", contractAt("UpgradableProxy"));

it("is not taken for code that came behind the one that the token is paused for", async () => {
  await upgrade("SecondPlain");
  await stateWhere(({ isPaused }) => isPaused, "it is paused");
  await upgrade("MoodyToken");
  await expect(accept()).rejects.toMatchObject({ code: "INVALID_DECISION" });
  const told = contractAt("MoodyToken").slice(2);
  expect(await stateOf()).toMatchObject({
    isPaused: true,
    reason: expect.stringContaining(told),
    changedBy: "ann",
  });
  await accept();
  expect(await stateOf()).toMatchObject({ isPaused: false });
  const events = await listEvents(bench.database, { afterSeq: 0, limit: 100 });
  expect(events.flatMap(({ type }) => (type.startsWith("token.") ? [type] : []))).toEqual([
    "token.paused",
    "token.paused",
    "token.resumed",
  ]);
});

it("is taken for code that was accepted before, which came back", async () => {
  await upgrade("SecondPlain");
  await stateWhere(({ isPaused }) => isPaused, "it is paused");
  await upgrade("PlainToken");
  await accept();
  expect(await stateOf()).toMatchObject({ isPaused: false });
});

it("is waited for from the block on that the chain came back to, where it lost that of the other code", async () => {
  const after = async () => {
    const [row] = await bench.database.query<{ after: string | null }>(
      `SELECT ${pausedAfterSql("'PROXY'")} AS after`,
    );
    return row?.after;
  };
  expect(await after()).toBeNull();
  const { height: kept } = bench.chain.chain.view.head();
  await bench.mine([]);
  await upgrade("SecondPlain");
  await stateWhere(({ isPaused }) => isPaused, "it is paused");
  expect(Number(await after())).toBeGreaterThanOrEqual(kept + 2);
  bench = await bench.without(kept);
  // Sooner than before.
  await bench.mine([callOf("UpgradableProxy", "upgradeTo", [contractAt("SecondPlain")])]);
  for (let block = 0; block < 4; block += 1) await bench.mine([]);
  const { to } = await bench.recover();
  expect(to.height).toBeLessThanOrEqual(kept);
  expect(await after()).toBe(String(to.height + 1));
});

/** Customer, units and state of each deposit of the token, in their order. */
async function deposits(): Promise<readonly string[]> {
  const found = await listDeposits(bench.database, { afterSeq: 0, limit: 100 });
  return found.flatMap(({ asset, customerId, amountUnits, status }) =>
    asset === "PROXY" ? [`${customerId} ${amountUnits} ${status}`] : [],
  );
}

async function availableOf(customer: string): Promise<bigint | undefined> {
  const balances = await customerBalances(bench.database, parseCustomerId(customer));
  return balances?.find(({ asset }) => asset === "PROXY")?.availableUnits;
}

const send = (to: string, units: bigint) => callOf("UpgradableProxy", "transfer", [to, units]);

async function confirm(): Promise<void> {
  await bench.mine([]);
  await bench.mine([]);
  await bench.caughtUp();
}

describe("deposits that waited for it", () => {
  it("were told of when they began to wait, whenever they were seen, and were pending", async () => {
    const alice = await bench.register("alice");
    const pending = async () => {
      const balances = await customerBalances(bench.database, parseCustomerId("alice"));
      return balances?.find(({ asset }) => asset === "PROXY")?.pendingUnits;
    };
    await bench.mine([callOf("UpgradableProxy", "mint", [alice, 70n])]);
    await bench.caughtUp();
    expect([await deposits(), await pending()]).toEqual([["alice 70 detected"], 70n]);
    await bench.mine([
      callOf("UpgradableProxy", "upgradeTo", [contractAt("SecondPlain")]),
      callOf("UpgradableProxy", "mint", [alice, 7n]),
      callOf("UpgradableProxy", "mint", [ISSUER.address, 7n]),
    ]);
    await bench.caughtUp();
    expect([await deposits(), await pending()]).toEqual([["alice 70 held", "alice 7 held"], 77n]);
    const told = await listEvents(bench.database, { afterSeq: 0, limit: 100 });
    expect(told.map(({ type, data }) => [type, data["amountUnits"]])).toEqual([
      ["deposit.detected", "70"],
      ["token.paused", undefined],
      ["deposit.held", "70"],
      ["deposit.held", "7"],
    ]);
    const [detected, , held] = told;
    expect(held?.data).toEqual(detected?.data);
  });

  it("are credited as far as accepted code told of them; others are set aside", async () => {
    const [alice, bob] = [await bench.register("alice"), await bench.register("bob")];
    await bench.mine([{ data: compileFixture("DepositTokens.sol")["Pretender"]?.bytecode ?? "" }]);
    await bench.mine([callOf("UpgradableProxy", "mint", [alice, 70n])]);
    await bench.mine([callOf("UpgradableProxy", "upgradeTo", [createdAt(8)]), send(bob, 1_000n)]);
    await bench.caughtUp();
    await upgrade("PlainToken");
    await bench.mine([callOf("UpgradableProxy", "mint", [alice, 5n])]);
    await bench.caughtUp();
    expect(await deposits()).toEqual(["alice 70 held", "bob 1000 held", "alice 5 held"]);
    await accept();
    await confirm();
    expect(await deposits()).toEqual([
      "alice 70 credited",
      "bob 1000 suspense",
      "alice 5 credited",
    ]);
    expect([await availableOf("alice"), await availableOf("bob")]).toEqual([75n, undefined]);
    const told = (await listEvents(bench.database, { afterSeq: 0, limit: 100 })).filter(
      ({ data }) => data["customerId"] === "bob",
    );
    expect(told.map(({ type }) => type)).toEqual(["deposit.held", "deposit.suspense"]);

    // Nobody has it: a person writes it off, and ledger and chain are even.
    const [never] = await listDeposits(bench.database, {
      status: "suspense",
      afterSeq: 0,
      limit: 1,
    });
    if (never === undefined) throw new Error("it is gone");
    const uneven = async () => {
      const { internalBreaks, tokens } = await bench.reconcile();
      expect(internalBreaks).toEqual([]);
      const proxy = tokens.find(({ asset }) => asset === "PROXY");
      return proxy?.lines.map(({ differenceUnits }) => differenceUnits);
    };
    expect(await uneven()).toEqual([0n, -1_000n]);
    const { id: depositId, txHash: hash, height } = never;
    const terms = { action: "adjust", key: "never-was", asset: "PROXY", depositId } as const;
    const sides = { debit: "liability:suspense", credit: "asset:deposit_addresses" };
    const proven = { amountAtoken: "1000", address: bob, hash, height };
    await bench.decide(bench.ledger.owner, { ...terms, ...sides, ...proven }, "it never was");
    expect(await uneven()).toEqual([0n, 0n]);
  });

  it("are of the code that is accepted, not of what came between, which a person may give", async () => {
    const [alice, bob] = [await bench.register("alice"), await bench.register("bob")];
    await bench.mine([callOf("UpgradableProxy", "mint", [ISSUER.address, 5_000n])]);
    await upgrade("SecondPlain");
    await bench.mine([send(alice, 1_000n)]);
    await upgrade("MoodyToken");
    await bench.mine([send(bob, 50n)]);
    await bench.caughtUp();
    await expect(accept()).rejects.toMatchObject({ code: "INVALID_DECISION" });
    await accept();
    await confirm();
    expect(await deposits()).toEqual(["alice 990 suspense", "bob 50 credited"]);
    const [deposit] = await listDeposits(bench.database, { afterSeq: 0, limit: 1 });
    const terms = { action: "assign-deposit", depositId: deposit?.id ?? "" } as const;
    await bench.decide(bench.ledger.owner, { ...terms, customerId: "alice" }, "it arrived");
    expect(await availableOf("alice")).toBe(990n);
    expect((await bench.reconcile()).internalBreaks).toEqual([]);
  });

  it("are of code that a person has accepted since, also where the token was paused again before", async () => {
    const alice = await bench.register("alice");
    await bench.mine([callOf("UpgradableProxy", "mint", [ISSUER.address, 5_000n])]);
    await upgrade("SecondPlain");
    await bench.mine([send(alice, 1_000n)]);
    await bench.caughtUp();
    expect(await deposits()).toEqual(["alice 990 held"]);
    await bench.stopWatching();
    await accept();
    const third = callOf("UpgradableProxy", "upgradeTo", [contractAt("MoodyToken")]);
    await bench.mine([third, send(alice, 50n)]);
    await bench.watch();
    await bench.caughtUp();
    expect(await deposits()).toEqual(["alice 990 held", "alice 50 held"]);
    await accept();
    await confirm();
    expect(await deposits()).toEqual(["alice 990 credited", "alice 50 credited"]);
    expect(await availableOf("alice")).toBe(1_040n);
    expect((await bench.reconcile()).internalBreaks).toEqual([]);
  });
});
