/** The row of withdrawals through the worker, and how a benchmark asks for them. */
import type { Address } from "../../../chain/address.js";
import { ATOKEN_PER_TOKEN } from "../../../chain/units.js";
import { until } from "../../helpers/until.js";
import { closedLoop, encodeRequest, type LoadResult } from "../http-load.js";
import { naiveLoop, payAll } from "../payers.js";
import { type BenchRow, formatFigure } from "../report.js";
import { createRecipients } from "../senders.js";
import type { Stack } from "../targets/stack-target.js";
import { lengthOf, type RunLength } from "./chain-rows.js";

/** Withdrawals through the worker, and payments of the naive loop. */
const WITHDRAWALS = { quick: 1_000, full: 4_000 };
const NAIVE_PAYMENTS = { quick: 50, full: 200 };

/** Withdrawals before the clock starts: without them it is measured how fast V8 compiles. */
const FIRST_WITHDRAWALS = 1_000;

/** Requests to withdraw that are under way at once: those that wait for a commit share the next one. */
const WITHDRAWAL_CONNECTIONS = 64;

/** Longest wait of the loop for one answer of a node that does not fail. */
const LOOP_TIMEOUT_MS = 10_000;

/** Time for booking, crediting and sending. */
const WAIT_TIMEOUT_MS = 180_000;

/** What a row of payments is run with. */
export interface PaymentRowOptions {
  readonly length: RunLength;
  readonly say: (line: string) => void;
}

/** Withdrawals through the worker beside a loop that sends one by one. */
export async function withdrawalRow(
  stack: Stack,
  { length, say }: PaymentRowOptions,
): Promise<BenchRow> {
  await stack.startPart("withdrawal-worker");
  const customerId = "bench-withdrawals";
  await fundCustomer(stack, customerId);
  const count = lengthOf(WITHDRAWALS, length);
  const recipients = createRecipients(FIRST_WITHDRAWALS + count);
  const first = withdrawals(stack, customerId, recipients.slice(0, FIRST_WITHDRAWALS));
  const requests = withdrawals(stack, customerId, recipients.slice(FIRST_WITHDRAWALS));
  await send(stack, first);
  const { seq } = await untilEvents(stack, { type: "withdrawal.settled", count: first.length });
  const parts = ["withdrawal-worker", "node", "sidecar-online", "deposit-watcher"] as const;
  const cpuSeconds = () => [
    ...parts.map((part) => stack.cpuSeconds(part)),
    stack.databaseCpuSeconds(),
  ];
  const before = cpuSeconds();
  const startMs = Date.now();
  const accepted = await send(stack, requests);
  const { lastMs } = await untilEvents(stack, { type: "withdrawal.broadcast", count, seq });
  const perSecond = count / ((lastMs - startMs) / 1_000);
  say(`worker: ${formatFigure(perSecond)} withdrawals/s`);
  const after = cpuSeconds();
  const cpu = [...parts, "PostgreSQL"].map((part, index) => {
    const seconds = (after[index] ?? 0) - (before[index] ?? 0);
    return `${part} ${formatFigure((seconds * 1e6) / count)}`;
  });
  await stack.stopPart("withdrawal-worker");
  const loop = naiveLoop({ url: stack.nodeUrl, account: stack.payer, timeoutMs: LOOP_TIMEOUT_MS });
  const { perSecond: naive } = await payAll(
    loop,
    createRecipients(lengthOf(NAIVE_PAYMENTS, length)),
  );
  loop.close();
  say(`naive loop: ${formatFigure(naive)} payments/s`);
  return {
    title: "withdrawals, accepted to broadcast",
    unit: "per s",
    ours: perSecond,
    peer: naive,
    peerName: "ethers loop",
    details: [
      `${count} requests over HTTP behind ${FIRST_WITHDRAWALS} others, accepted at ` +
        `${formatFigure(accepted.perSecond)}/s (p50 ${formatFigure(accepted.p50Ms)} ms, p99 ${formatFigure(accepted.p99Ms)} ms); ` +
        "ours holds, slots, signs and stores each before it is sent",
      `processor time until the last one was sent, microseconds each: ${cpu.join(", ")}`,
      "the loop is getTransactionCount and sendTransaction, one by one, and remembers nothing",
    ],
  };
}

/** Gives a customer coins the way customers get them. */
export async function fundCustomer(stack: Stack, customerId: string): Promise<void> {
  const address = await stack.createAddress(customerId);
  const valueAtoken = 1_000n * ATOKEN_PER_TOKEN;
  const payment = () => ({ to: address, valueAtoken });
  await stack.makeBlocks({ count: 1, size: 1, isExact: false, payment });
  const url = `${stack.home.url("depositApi")}/v1/customers/${customerId}/balances`;
  await until(
    async () => {
      const response = await fetch(url, { headers: stack.authorization() });
      const { balances } = (await response.json()) as {
        balances?: { availableAtoken: string }[];
      };
      return BigInt(balances?.[0]?.availableAtoken ?? "0") >= valueAtoken;
    },
    { timeoutMs: WAIT_TIMEOUT_MS, what: "the customer's deposit is credited" },
  );
}

/** Requests of 1 atoken for each recipient. */
export function withdrawals(
  stack: Stack,
  customerId: string,
  recipients: readonly Address[],
): Buffer[] {
  return recipients.map((to) =>
    encodeRequest(stack.home.url("withdrawalApi"), {
      path: "/v1/withdrawals",
      headers: { ...stack.authorization(), "Idempotency-Key": `bench-${to}` },
      body: JSON.stringify({ customerId, asset: "TOKEN", to, amountAtoken: "1" }),
    }),
  );
}

/** Sends requests to the withdrawal API, 64 at a time. */
export function send(stack: Stack, requests: readonly Buffer[]): Promise<LoadResult> {
  const waiting = [...requests];
  return closedLoop({
    url: stack.home.url("withdrawalApi"),
    connections: WITHDRAWAL_CONNECTIONS,
    next: () => waiting.shift(),
  });
}

/**
 * Waits until so many events of a type were told behind `seq`.
 * @returns Unix milliseconds of the last of them, and the number of the last event that was read
 */
export async function untilEvents(
  stack: Stack,
  {
    type,
    count,
    seq = 0,
  }: { readonly type: string; readonly count: number; readonly seq?: number },
): Promise<{ readonly lastMs: number; readonly seq: number }> {
  const times: number[] = [];
  let last = seq;
  await until(
    async () => {
      const events = await stack.events(last);
      last = events.at(-1)?.seq ?? last;
      times.push(...events.filter((event) => event.type === type).map(({ at }) => Date.parse(at)));
      return times.length >= count;
    },
    { timeoutMs: WAIT_TIMEOUT_MS, what: `${count} events ${type}` },
  );
  return { lastMs: Math.max(...times), seq: last };
}
