/** What other code says that it took of a hot wallet: it waits for a person, and stops nothing else. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import type { Hash32 } from "../../../../chain/hex.js";
import { readTokenStates } from "../../../../ledger/assets/token-state.js";
import { readOpenMatters } from "../../../../ledger/decisions/open-matters.js";
import { freezeSigning, readFreeze } from "../../../../ledger/requests/signing-freeze.js";
import { countOfOtherCode } from "../../../../ledger/requests/unexplained-outflows.js";
import { readUnacknowledged } from "../../../../ledger/withdrawals/foreign-transactions.js";
import { registerWallets } from "../../../../ledger/wallets/wallet-registry.js";
import { testAddress } from "../../../helpers/chains/fake-chain.js";
import { compileFixture } from "../../../helpers/contracts/solidity.js";
import { WALLET } from "../../../helpers/exchange/house.js";
import { until } from "../../../helpers/until.js";
import { callOf, contractAt, createdAt, ISSUER, THIEF, TokenBench } from "../token-bench.js";

/** Another hot wallet, which nothing is taken of. */
const OTHER = testAddress(77);

let bench: TokenBench;

beforeEach(async () => {
  bench = await TokenBench.open();
  const wallet = { address: OTHER, label: "other", operator: "test", reason: "a test" };
  await registerWallets(bench.database, [wallet]);
  await bench.watch();
  await bench.deploy();
  const { bytecode = "" } = compileFixture("DepositTokens.sol")["SeizingToken"] ?? {};
  await bench.mine([
    { data: bytecode },
    callOf("UpgradableProxy", "mint", [WALLET, 100n]),
    { to: WALLET, value: 10n ** 18n },
  ]);
  await until(
    async () => {
      const state = (await readTokenStates(bench.database)).get("PROXY");
      return state?.codeHash !== undefined;
    },
    { timeoutMs: 20_000, what: "its code is pinned" },
  );
  await bench.caughtUp();
});
afterEach(() => bench.close());

const seize = (units: bigint) =>
  callOf("UpgradableProxy", "seize", [WALLET, ISSUER.address, units]);

const upgrade = callOf("UpgradableProxy", "upgradeTo", [createdAt(8)]);

async function settled(): Promise<void> {
  await bench.mine([]);
  await bench.caughtUp();
}

const accept = () => bench.accept("PROXY", contractAt("UpgradableProxy"));

const isFrozen = async () => (await readFreeze(bench.database, WALLET)).frozen;

const isPaused = async () => (await readTokenStates(bench.database)).get("PROXY")?.isPaused;

/** Outflows of the token that wait for a person. */
async function waiting(): Promise<readonly string[]> {
  const { outflows } = await readOpenMatters(bench.database, 100);
  return outflows.flatMap(({ asset, hash, wallet, amountUnits }) =>
    asset === "PROXY" ? [`${hash} ${wallet} ${amountUnits}`] : [],
  );
}

async function uneven(): Promise<readonly bigint[]> {
  const { internalBreaks, tokens } = await bench.reconcile();
  expect(internalBreaks).toEqual([]);
  const proxy = tokens.find(({ asset }) => asset === "PROXY");
  return proxy?.lines.map(({ differenceUnits }) => differenceUnits) ?? [];
}

it("freezes no wallet, and is decided about once its code is accepted", async () => {
  const [, first = "0x" as Hash32] = await bench.mine([upgrade, seize(5n)]);
  const [second = "0x" as Hash32] = await bench.mine([seize(1n)]);
  await settled();
  expect([await isPaused(), await isFrozen()]).toEqual([true, false]);
  const both = [`${first} ${WALLET} 5`, `${second} ${WALLET} 1`];
  expect(await waiting()).toEqual(both);
  // Nor does it hold up others, or a release, where the wallet is frozen for something else.
  const { owner } = bench.ledger;
  await freezeSigning(owner, WALLET, "by hand");
  expect((await readFreeze(bench.database, OTHER)).behindElsewhere).toBeUndefined();
  expect(await readUnacknowledged(bench.database, WALLET)).toEqual([]);
  await accept();
  expect((await readFreeze(bench.database, OTHER)).behindElsewhere).toBeUndefined();
  expect([await waiting(), await uneven()]).toEqual([both, [-6n, 0n, 0n]]);
  expect(await countOfOtherCode(owner, "PROXY")).toBe(2);
  for (const hash of [first, second]) {
    const terms = { action: "accept-outflow", hash, account: "asset:break" } as const;
    await bench.decide(owner, terms, "its issuer took it");
  }
  expect([await waiting(), await uneven()]).toEqual([[], [0n, 0n, 0n]]);
  expect(await countOfOtherCode(owner, "PROXY")).toBe(0);
});

it("freezes where accepted code says so, also of blocks before other code ran", async () => {
  await bench.mine([upgrade]);
  await settled();
  await until(async () => (await isPaused()) === true, {
    timeoutMs: 20_000,
    what: "it stands still",
  });
  await accept();
  await bench.stopWatching();
  const [hash = "0x" as Hash32] = await bench.mine([seize(5n)]);
  await bench.mine([
    callOf("UpgradableProxy", "upgradeTo", [contractAt("PlainToken")]),
    callOf("UpgradableProxy", "mint", [WALLET, 1n]),
  ]);
  await bench.watch();
  await settled();
  expect([await isPaused(), await isFrozen()]).toEqual([true, true]);
  expect(await waiting()).toEqual([`${hash} ${WALLET} 5`]);
  expect((await readFreeze(bench.database, OTHER)).behindElsewhere).toContain(hash);
  expect(await readUnacknowledged(bench.database, WALLET)).toMatchObject([{ hash }]);
});

it("freezes as ever where coins left with it", async () => {
  await bench.mine([upgrade]);
  const [hash = "0x" as Hash32] = await bench.mine([{ from: THIEF, ...seize(5n) }]);
  await settled();
  expect([await isPaused(), await isFrozen()]).toEqual([true, true]);
  expect(await waiting()).toEqual([`${hash} ${WALLET} 5`]);
  expect((await readFreeze(bench.database, OTHER)).behindElsewhere).toContain(hash);
});
