/**
 * Rows of payments over a node that fails now and then: whom the worker, libraries and a loop pay
 * once, twice or never, and how fast. All of them reach the same node through the same proxy.
 */
import type { Address } from "../../../chain/address.js";
import { environmentName } from "../../../runtime/config/config.js";
import { workerConfigFile } from "../../../withdrawal-worker/config.js";
import { HttpProxy, type Rule } from "../../helpers/faults/proxy/http-proxy.js";
import { changing, on, sometimes } from "../../helpers/faults/proxy/rules.js";
import { chance, createRandom } from "../../helpers/random.js";
import { until } from "../../helpers/until.js";
import { blockNumber, callRpc, callRpcBatch } from "../json-rpc.js";
import { type Paid, payAll, PAYERS, type Payer } from "../payers.js";
import { type BenchRow, formatFigure } from "../report.js";
import { createRecipients, type Sender } from "../senders.js";
import type { Stack } from "../targets/stack-target.js";
import { lengthOf } from "./chain-rows.js";
import {
  fundCustomer,
  type PaymentRowOptions,
  send,
  untilEvents,
  withdrawals,
} from "./withdrawal-rows.js";

/** Shares of the requests that go wrong, percent. */
const FAULT_PERCENTS = [0, 1, 5] as const;

/** Recipients of each payer at each share. */
const PAYMENTS = { quick: 200, full: 1_000 };

/** Longest wait for one answer, the same for everybody. */
const ANSWER_TIMEOUT_MS = 2_000;

/** A node behind a balancer that is late answers with a count of this many transactions less. */
const STALE_TRANSACTIONS = 3n;

/** Blocks without a new payment after which what is not mined counts as stuck. */
const QUIET_BLOCKS = 3;

/** Time for all that can still be mined. */
const SETTLE_TIMEOUT_MS = 300_000;

/** Balances asked for in one request. */
const BALANCES_PER_REQUEST = 100;

/** What became of a payer's payments, by the chain. */
interface Outcome {
  readonly name: string;
  readonly once: number;
  readonly doubled: number;
  /** Answered with a hash, and not mined. */
  readonly stuck: number;
  /** Given up, and not mined. */
  readonly missing: number;
  readonly perSecond: number;
}

/** A row for each share of faults. */
export async function faultRows(
  stack: Stack,
  { length, say }: PaymentRowOptions,
): Promise<BenchRow[]> {
  const seed = Date.now() % 1_000_000_000;
  say(`faults: seed ${seed}`);
  const proxy = await HttpProxy.start(stack.nodeUrl, createRandom(seed));
  try {
    const customerId = "bench-faults";
    const count = lengthOf(PAYMENTS, length);
    const recipients = createRecipients(FAULT_PERCENTS.length * (PAYERS.length + 1) * count);
    // Those at the end of the senders: the blocks of a benchmark are made by the first.
    const accounts = stack.senders.slice(-FAULT_PERCENTS.length * PAYERS.length);
    await stack.startPart("withdrawal-worker", workerSettings(proxy.url));
    await fundCustomer(stack, customerId);
    // The first payments measure how fast V8 compiles.
    await payByWorker(stack, customerId, createRecipients(recipients.length + count).slice(-count));
    const rows: BenchRow[] = [];
    for (const percent of FAULT_PERCENTS) {
      proxy.rules = faults(percent / 100);
      const peers: Outcome[] = [];
      const ours = await payByWorker(stack, customerId, recipients.splice(0, count));
      say(`${percent} % faults: ${describe(ours)}`);
      for (const create of PAYERS) {
        const account = accounts.pop();
        if (account === undefined) throw new Error("no account for a payer");
        const payer = create({ url: proxy.url, account, timeoutMs: ANSWER_TIMEOUT_MS });
        const outcome = await payByPeer(stack, payer, {
          account,
          recipients: recipients.splice(0, count),
        });
        say(`${percent} % faults: ${describe(outcome)}`);
        peers.push(outcome);
      }
      rows.push(rowOf({ percent, count, ours, peers }));
    }
    return rows;
  } finally {
    await proxy.close();
  }
}

/** The node's answers are lost, late or another's in this share of the requests, from 0 to 1. */
function faults(share: number): Rule[] {
  const stale = changing("stale nonce", "eth_getTransactionCount", (count) => {
    const seen = BigInt(String(count));
    return `0x${(seen > STALE_TRANSACTIONS ? seen - STALE_TRANSACTIONS : 0n).toString(16)}`;
  });
  return [
    sometimes(
      share,
      { kind: "hang after" },
      { kind: "reset before" },
      { kind: "status", status: 503, text: "<html><body>503</body></html>" },
    ),
    on(["eth_getTransactionCount"], (exchange, random) =>
      chance(random, share) ? stale(exchange, random) : undefined,
    ),
  ];
}

function workerSettings(nodeUrl: string): Record<string, string> {
  const { name } = workerConfigFile;
  return {
    [environmentName(name, "node.json-rpc-url")]: nodeUrl,
    [environmentName(name, "node.request-timeout-ms")]: String(ANSWER_TIMEOUT_MS),
  };
}

async function payByWorker(
  stack: Stack,
  customerId: string,
  recipients: readonly Address[],
): Promise<Outcome> {
  const { length: count } = recipients;
  const seq = (await stack.events(0)).at(-1)?.seq ?? 0;
  const startMs = Date.now();
  await send(stack, withdrawals(stack, customerId, recipients));
  const { lastMs } = await untilEvents(stack, { type: "withdrawal.broadcast", count, seq });
  await untilEvents(stack, { type: "withdrawal.settled", count, seq });
  const perSecond = count / ((lastMs - startMs) / 1_000);
  return judge(stack, { name: "causeway", recipients, sent: new Set(recipients), perSecond });
}

async function payByPeer(
  stack: Stack,
  payer: Payer,
  { account, recipients }: { readonly account: Sender; readonly recipients: readonly Address[] },
): Promise<Outcome> {
  let paid: Paid;
  try {
    paid = await payAll(payer, recipients);
  } finally {
    payer.close();
  }
  await untilQuiet(stack.nodeUrl, account.address);
  const { sent, perSecond } = paid;
  return judge(stack, { name: payer.name, recipients, sent, perSecond });
}

/** Waits until an account's transactions are mined, but for those that nothing will bring into a block. */
async function untilQuiet(url: string, account: Address): Promise<void> {
  let mined = "";
  let since = 0;
  await until(
    async () => {
      const height = await blockNumber(url);
      const count = await callRpc<string>(url, "eth_getTransactionCount", [account, "latest"]);
      if (count !== mined) [mined, since] = [count, height];
      return height >= since + QUIET_BLOCKS;
    },
    { timeoutMs: SETTLE_TIMEOUT_MS, what: `the transactions of ${account} are mined` },
  );
}

/** Looks at what each recipient has: 1 atoken was owed. */
async function judge(
  stack: Stack,
  paid: {
    readonly name: string;
    readonly recipients: readonly Address[];
    readonly sent: ReadonlySet<Address>;
    readonly perSecond: number;
  },
): Promise<Outcome> {
  const { name, recipients, sent, perSecond } = paid;
  const totals = { once: 0, doubled: 0, stuck: 0, missing: 0 };
  for (let start = 0; start < recipients.length; start += BALANCES_PER_REQUEST) {
    const page = recipients.slice(start, start + BALANCES_PER_REQUEST);
    const calls = page.map((to) => ({ method: "eth_getBalance", params: [to, "latest"] }));
    const balances = await callRpcBatch<string>(stack.nodeUrl, calls);
    for (const [index, to] of page.entries()) {
      const receivedAtoken = BigInt(balances[index] ?? "");
      if (receivedAtoken === 1n) totals.once += 1;
      else if (receivedAtoken > 1n) totals.doubled += 1;
      else if (sent.has(to)) totals.stuck += 1;
      else totals.missing += 1;
    }
  }
  return { name, ...totals, perSecond };
}

function describe({ name, once, doubled, missing, stuck, perSecond }: Outcome): string {
  return (
    `${name}: ${once} paid once, ${doubled} doubled, ${missing} missing, ${stuck} stuck, ` +
    `${formatFigure(perSecond)}/s`
  );
}

function rowOf(trial: {
  readonly percent: number;
  readonly count: number;
  readonly ours: Outcome;
  readonly peers: readonly Outcome[];
}): BenchRow {
  const { percent, count, ours, peers } = trial;
  const best = peers.toSorted((left, right) => right.once - left.once)[0];
  return {
    title: `paid exactly once at ${percent} % faults`,
    unit: `of ${count}`,
    ours: ours.once,
    ...(best !== undefined && { peer: best.once, peerName: best.name }),
    aim: { value: count },
    details: [ours, ...peers].map(describe),
  };
}
