/** The rows of withdrawals through the worker, and how a benchmark asks for them. */
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

/**
 * Withdrawals through the worker beside a loop that sends one by one: from the first request, and as many
 * again that were accepted while the wallet was drained, from the last of them on.
 */
export async function withdrawalRows(
  stack: Stack,
  { length, say }: PaymentRowOptions,
): Promise<BenchRow[]> {
  await stack.startPart("withdrawal-worker");
  const customerId = "bench-withdrawals";
  await fundCustomer(stack, customerId);
  const count = lengthOf(WITHDRAWALS, length);
  const recipients = createRecipients(FIRST_WITHDRAWALS + 2 * count);
  const [first, requests, stopped] = [
    [0, FIRST_WITHDRAWALS],
    [FIRST_WITHDRAWALS, FIRST_WITHDRAWALS + count],
    [FIRST_WITHDRAWALS + count, FIRST_WITHDRAWALS + 2 * count],
  ].map((range) => withdrawals(stack, customerId, recipients.slice(...range))) as [
    Buffer[],
    Buffer[],
    Buffer[],
  ];
  await send(stack, first);
  const settled = { type: "withdrawal.settled", count: first.length };
  const { seq } = await untilEvents(stack, settled);
  const meter = new Meter(stack);
  const startMs = Date.now();
  const accepted = await send(stack, requests);
  const broadcast = { type: "withdrawal.broadcast", count };
  const { lastMs } = await untilEvents(stack, { ...broadcast, seq });
  const perSecond = count / ((lastMs - startMs) / 1_000);
  say(`worker: ${formatFigure(perSecond)} withdrawals/s`);
  const cpu = meter.each(count);
  const behind = await untilEvents(stack, { ...settled, count, seq });
  const wallet = await stack.hotWallet();
  await stack.causeway("wallets", "drain", wallet, "--reason", "a backlog is wanted");
  const acceptedOnly = await send(stack, stopped.slice(1));
  await stack.causeway("wallets", "activate", wallet, "--reason", "the backlog stands");
  const backlogMeter = new Meter(stack);
  const lastOneMs = Date.now();
  await send(stack, stopped.slice(0, 1));
  const backlog = await untilEvents(stack, { ...broadcast, seq: behind.seq });
  const backlogPerSecond = count / ((backlog.lastMs - lastOneMs) / 1_000);
  say(`backlog: ${formatFigure(backlogPerSecond)} withdrawals/s`);
  const backlogCpu = backlogMeter.each(count);
  await stack.stopPart("withdrawal-worker");
  const loop = naiveLoop({ url: stack.nodeUrl, account: stack.payer, timeoutMs: LOOP_TIMEOUT_MS });
  const { perSecond: naive } = await payAll(
    loop,
    createRecipients(lengthOf(NAIVE_PAYMENTS, length)),
  );
  loop.close();
  say(`naive loop: ${formatFigure(naive)} payments/s`);
  const beside = { unit: "per s", peer: naive, peerName: "ethers loop" };
  return [
    {
      ...beside,
      title: "withdrawals, accepted to broadcast",
      ours: perSecond,
      details: [
        `${count} requests over HTTP behind ${FIRST_WITHDRAWALS} others, accepted at ${loadText(accepted)}; ` +
          "ours holds, slots, signs and stores each before it is sent",
        `processor time until the last one was sent, microseconds each: ${cpu}`,
        "the loop is getTransactionCount and sendTransaction, one by one, and remembers nothing",
      ],
    },
    {
      ...beside,
      title: "withdrawals of a backlog, signed and sent",
      ours: backlogPerSecond,
      details: [
        `${count} requests accepted at ${loadText(acceptedOnly)} while the wallet was drained, but for the ` +
          "last, with which the clock starts",
        `processor time until the last one was sent, microseconds each: ${backlogCpu}`,
      ],
    },
  ];
}

const loadText = ({ perSecond, p50Ms, p99Ms }: LoadResult) =>
  `${formatFigure(perSecond)}/s (p50 ${formatFigure(p50Ms)} ms, p99 ${formatFigure(p99Ms)} ms)`;

/** Processor time of all parts from its making on. */
class Meter {
  static readonly #parts = [
    "withdrawal-worker",
    "node",
    "sidecar-online",
    "deposit-watcher",
  ] as const;
  readonly #before: readonly number[];

  constructor(private readonly stack: Stack) {
    this.#before = this.#seconds();
  }

  #seconds(): number[] {
    const { stack } = this;
    return [...Meter.#parts.map((part) => stack.cpuSeconds(part)), stack.databaseCpuSeconds()];
  }

  /** Microseconds by part for each of `count`, as text. */
  each(count: number): string {
    const after = this.#seconds();
    return [...Meter.#parts, "PostgreSQL"]
      .map((part, index) => {
        const seconds = (after[index] ?? 0) - (this.#before[index] ?? 0);
        return `${part} ${formatFigure((seconds * 1e6) / count)}`;
      })
      .join(", ");
  }
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
