/** What a transaction moved for each account, as who looks for a deposit is shown it. */
import { expect, it } from "@jest/globals";
import { id, toBeHex, zeroPadValue } from "ethers";
import { type Address, parseAddress, toChecksumAddress } from "../../../../chain/address.js";
import type { PageContext } from "../../../../explorer/pages/context.js";
import { depositRoutes } from "../../../../explorer/pages/deposit.js";
import { openPage, shownContent } from "../../../helpers/pages/explorer-page.js";

const HASH = `0x${"ab".repeat(32)}`;
const PAYER = parseAddress(`0x${"70".repeat(20)}`);
const [OTHER, TOKEN, FEES] = ["71", "72", "73"].map((byte) =>
  parseAddress(`0x${byte.repeat(20)}`),
) as [Address, Address, Address];
const place = { height: 7, index: 0 };

/** A transaction as the node has it: its moves, undefined where they are not told, and its logs. */
interface Mined {
  readonly changes: readonly object[] | undefined;
  readonly logs?: readonly object[];
  /** What a contract says that somebody has; undefined where it says nothing. */
  readonly units?: bigint | undefined;
  /** Why the node does not ask contracts. */
  readonly refusal?: Error;
}

const FEE = { reason: "FEE", from: PAYER, to: FEES, amountAtoken: 1n, effective: true };

/** A node in whose block one transaction was carried out. */
function contextOf({ changes, logs = [], units, refusal }: Mined): PageContext {
  const transaction = { hash: HASH, from: PAYER, to: PAYER, place, input: "0x" };
  const receipt = { hash: HASH, isSuccess: true, gasUsed: 1n, gasPriceAtoken: 1n, logs };
  const block = { height: 7, hash: HASH, timestampSeconds: 1 };
  const journaled = { hash: HASH, changes, gasUsed: 1n, gasPriceAtoken: 1n, cosmos: undefined };
  const answer = (value: unknown) => () => Promise.resolve(value);
  const tokenBalanceAnswers = (queries: readonly object[]) =>
    refusal === undefined
      ? Promise.resolve(queries.map(() => ({ ok: true, units })))
      : Promise.reject(refusal);
  return {
    chain: {
      evm: { tokenBalanceAnswers },
      head: answer({ height: 9 }),
      transaction: answer(transaction),
      receipts: answer([receipt]),
      blocks: answer([block]),
      journal: answer(changes === undefined ? "pruned" : { transactions: [journaled] }),
    },
    tokens: new Map(),
    publicUrl: "",
  } as unknown as PageContext;
}

async function textOf(mined: Mined): Promise<string> {
  const [route] = depositRoutes(contextOf(mined));
  const page = await openPage(route, { query: { tx: HASH } });
  return shownContent(page.content).text;
}

/** A call that pays an atoken. */
function payment(to: Address, more: object = {}): object {
  const call = { reason: "CALL", from: PAYER, amountAtoken: 1n, effective: true, tracePath: "0" };
  return { ...call, to, ...more };
}

const accounts = (count: number) =>
  Array.from({ length: count }, (_, index) => parseAddress(toBeHex(4_096 + index, 20)));

it("says how many accounts of a large payout are not shown", async () => {
  const textFor = (receivers: readonly Address[]) =>
    textOf({ changes: receivers.map((to) => payment(to)) });
  const few = await textFor(accounts(150));
  expect(few).toContain(toChecksumAddress(accounts(150)[149] ?? PAYER));
  expect(few).not.toContain("are not shown");
  // The payer is one of the accounts whose balance changed.
  expect(await textFor(accounts(250))).toContain("51 more are not shown.");
});

/** ERC-20's Transfer. */
function transferLog(units: bigint): object {
  const topics = [
    id("Transfer(address,address,uint256)"),
    zeroPadValue(PAYER, 32),
    zeroPadValue(OTHER, 32),
  ];
  return { address: TOKEN, topics, data: toBeHex(units, 32) };
}

const CARRIED_OUT = "2 of 2 confirmations are there: what it moved stands below";
const MOVED_NOTHING = "carried out and moved nothing but the fee";

it.each<readonly [what: string, mined: Mined, said: string]>([
  ["paid", { changes: [FEE, payment(OTHER)] }, CARRIED_OUT],
  ["failed to pay inside", { changes: [FEE, payment(OTHER, { effective: false })] }, MOVED_NOTHING],
  ["paid nothing", { changes: [FEE, payment(OTHER, { amountAtoken: 0n })] }, MOVED_NOTHING],
  ["paid itself", { changes: [FEE, payment(PAYER)] }, MOVED_NOTHING],
  [
    "paid one of two",
    { changes: [FEE, payment(OTHER), payment(TOKEN, { effective: false })] },
    CARRIED_OUT,
  ],
  ["moved a token", { changes: [FEE], logs: [transferLog(5n)] }, CARRIED_OUT],
  ["moved none of a token", { changes: [FEE], logs: [transferLog(0n)] }, MOVED_NOTHING],
  [
    "has no journal",
    { changes: undefined },
    "2 of 2 confirmations are there; what it moved is not told here",
  ],
])("never says that a transaction arrived which %s", async (_what, mined, said) => {
  const text = await textOf(mined);
  expect(text).toContain(said);
  expect(text).not.toContain("Arrived");
  expect(text.includes(MOVED_NOTHING)).toBe(said === MOVED_NOTHING);
});

/** What an escrow logs as a wrapped coin does. */
const DEPOSIT_LOG = {
  address: TOKEN,
  topics: [id("Deposit(address,uint256)"), zeroPadValue(OTHER, 32)],
  data: toBeHex(5n, 32),
};

it.each<readonly [what: string, mined: Omit<Mined, "changes">, isToken: boolean]>([
  ["does not say who has how much", { logs: [DEPOSIT_LOG] }, false],
  ["says it", { logs: [DEPOSIT_LOG], units: 0n }, true],
  [
    "is not asked, as its node has no time",
    { logs: [DEPOSIT_LOG], refusal: new Error("busy") },
    true,
  ],
  ["logs a Transfer as well", { logs: [DEPOSIT_LOG, transferLog(1n)] }, true],
])("takes deposits for a token's only where the contract %s", async (_what, mined, isToken) => {
  const text = await textOf({ changes: [FEE], ...mined });
  expect(text.includes("5 units")).toBe(isToken);
  expect(text.includes("No tokens were moved.")).toBe(!isToken);
  expect(text).toContain(isToken ? CARRIED_OUT : MOVED_NOTHING);
});
