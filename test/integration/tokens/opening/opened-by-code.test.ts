/** What lay at our addresses before a token counted is the word of code: of an accepted one it is booked. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import type { Address } from "../../../../chain/address.js";
import { type Hash32, parseHash32 } from "../../../../chain/hex.js";
import { TokenBook } from "../../../../deposit-watcher/tokens/token-book.js";
import {
  acceptCode,
  observeCodesNow,
  type ObservedCode,
  readTokenStates,
} from "../../../../ledger/assets/token-state.js";
import { registerWallets } from "../../../../ledger/wallets/wallet-registry.js";
import { testAddress } from "../../../helpers/chains/fake-chain.js";
import { compileFixture } from "../../../helpers/contracts/solidity.js";
import { WALLET } from "../../../helpers/exchange/house.js";
import { errorLog } from "../../../helpers/services/ledger.js";
import { derivation } from "../../../helpers/services/watcher.js";
import { until } from "../../../helpers/until.js";
import { callOf, contractAt, createdAt, ISSUER, TokenBench, TOKENS } from "../token-bench.js";

const { signal } = new AbortController();

/** A token behind a proxy of its own. */
const LATE = createdAt(8);
const listed = (codeHash?: Hash32) => [
  ...TOKENS,
  { symbol: "LATE", contractAddress: LATE, decimals: 0, ...(codeHash && { codeHash }) },
];
const late = (method: string, args: readonly unknown[]) => ({
  ...callOf("UpgradableProxy", method, args),
  to: LATE,
});

let bench: TokenBench;
let alice: Address;
const errors: Record<string, unknown>[] = [];

beforeEach(async () => {
  errors.length = 0;
  bench = await TokenBench.open();
  await bench.watch();
  await bench.deploy();
  alice = await bench.register("alice");
  const { bytecode = "" } = compileFixture("DepositTokens.sol")["UpgradableProxy"] ?? {};
  const implementation = contractAt("PlainToken").slice(2).padStart(64, "0");
  await bench.mine([
    { data: bytecode + implementation },
    late("mint", [alice, 70n]),
    late("mint", [WALLET, 30n]),
    late("mint", [ISSUER.address, 1_000n]),
  ]);
  await bench.caughtUp();
});
afterEach(() => bench.close());

/** Code that no contract has. */
const NAMED = parseHash32(`0x${"0d".repeat(32)}`);

const openBook = (codeHash?: Hash32) => {
  const { database, node } = bench;
  return TokenBook.open({ database, node, log: errorLog(errors) }, listed(codeHash));
};

const stateOf = async () => (await readTokenStates(bench.database)).get("LATE");

const opened = () =>
  until(async () => (await stateOf())?.isOpened === true, {
    timeoutMs: 20_000,
    what: "it is opened",
  });

/** What its contract runs after the last block. */
async function codeNow(): Promise<ObservedCode> {
  const height = await bench.node.blockNumber({ signal });
  const [code] = await bench.node.tokenCodes([{ contract: LATE, at: height }], { signal });
  if (code === undefined) throw new Error("no code");
  return { ...code, asset: "LATE", height };
}

async function observe(): Promise<void> {
  const [row] = await bench.database.query<{ epoch: string }>(
    `SELECT lease_epoch::text AS epoch FROM watch_lease`,
  );
  await observeCodesNow(bench.database, { epoch: BigInt(row?.epoch ?? "0") }, [await codeNow()]);
}

const booked = () =>
  bench.database.query(
    `SELECT e.kind, p.amount_units::text AS units FROM journal_entry e
       JOIN posting p ON p.journal_id = e.id WHERE p.asset = 'LATE' ORDER BY e.kind, e.id`,
  );

const OPENED = [
  { kind: "deposit.token_opening", units: "70" },
  { kind: "wallet.opening", units: "30" },
];

const upgrade = () => bench.mine([late("upgradeTo", [contractAt("SecondPlain")])]);

it("waits while the contract runs other code than the list names, and is opened once that is accepted", async () => {
  const book = await openBook(NAMED);
  await book.openWaiting({ signal });
  await book.openWaiting({ signal });
  expect([(await stateOf())?.isOpened, await booked()]).toEqual([false, []]);
  expect(errors).toEqual([
    {
      asset: "LATE",
      contract: LATE,
      height: (await codeNow()).height + 1,
      msg: "a token is not opened while its contract runs other code than was accepted",
    },
  ]);
  await bench.watch(listed(NAMED));
  await until(async () => (await stateOf())?.isPaused === true, {
    timeoutMs: 20_000,
    what: "it stands still",
  });
  await acceptCode(bench.ledger.owner, { ...(await codeNow()), by: "ann" });
  await bench.mine([]);
  await opened();
  expect(await booked()).toEqual(OPENED);
});

it("is opened by code that was accepted then, whichever is now", async () => {
  await bench.stopWatching();
  const book = await openBook();
  await observe();
  await upgrade();
  await observe();
  expect((await stateOf())?.isPaused).toBe(true);
  await acceptCode(bench.ledger.owner, { ...(await codeNow()), by: "ann" });
  await book.openWaiting({ signal });
  expect([(await stateOf())?.isOpened, await booked()]).toEqual([true, OPENED]);
  expect(errors).toEqual([]);
});

it("is opened with nothing where code that nobody accepted told of it, and the token goes on", async () => {
  await bench.stopWatching();
  const book = await openBook();
  await upgrade();
  await observe();
  expect((await stateOf())?.isPaused).toBe(false);
  // The last booked block has the code of before still.
  await book.openWaiting({ signal });
  expect([(await stateOf())?.isOpened, await booked()]).toEqual([false, []]);
  errors.length = 0;
  await bench.watch(listed(), errorLog(errors));
  await opened();
  expect(await booked()).toEqual([]);
  expect(errors.map(({ asset, msg }) => [asset, msg])).toContainEqual([
    "LATE",
    expect.stringContaining("code that nobody accepted tells what our addresses held"),
  ]);
  // The reconciliation says what a person has to book.
  const found = (await bench.reconcile()).tokens.find(({ asset }) => asset === "LATE");
  expect(found?.lines.map(({ differenceUnits }) => differenceUnits)).toEqual([30n, 70n]);
});

it("is not booked of a wallet or an address that is younger, either", async () => {
  await bench.watch(listed());
  await until(async () => (await stateOf())?.codeHash !== undefined, {
    timeoutMs: 20_000,
    what: "its code is pinned",
  });
  expect(await booked()).toEqual(OPENED);
  await upgrade();
  const wallet = testAddress(77);
  const next = derivation.addressAt(1);
  await bench.mine([late("transfer", [wallet, 100n]), late("transfer", [next, 100n])]);
  await bench.caughtUp();
  const terms = { label: "other", operator: "test", reason: "a test" };
  await registerWallets(bench.database, [{ address: wallet, ...terms }]);
  expect(await bench.register("bob")).toBe(next);
  await bench.mine([{ to: next, value: 1n }]);
  const isDone = async () => {
    const [row] = await bench.database.query<{ done: boolean }>(
      `SELECT (SELECT bool_and(past_booked) FROM wallet)
              AND (SELECT bool_and(backfilled) FROM deposit_address) AS done`,
    );
    return row?.done === true;
  };
  await until(isDone, { timeoutMs: 20_000, what: "the pasts are booked" });
  expect(await booked()).toEqual(OPENED);
});
