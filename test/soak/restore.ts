/**
 * A round in which the database is put back from an older copy: the documented commands recover it,
 * and an operator who knows what customers asked for decides what is left (docs/restore.md).
 */
import { pause } from "../helpers/faults/bench.js";
import { until } from "../helpers/until.js";
import type { LabExchange } from "../helpers/faults/lab/lab-exchange.js";

const DATABASE = "causeway";
const COPY = "older";
const REASON = "the client's own records";

const RETRY_MS = 500;

/** Works behind a copy, puts the copy back, and recovers; resolves when the exchange is whole. */
export async function restoreLedger(lab: LabExchange): Promise<void> {
  const { postgres, customers, random } = lab;
  if (postgres === undefined) throw new Error("no PostgreSQL of its own");
  await lab.heal();
  if (random.integer(2) === 0) await lab.work();
  await pausedFor(lab, () => postgres.replace(COPY, DATABASE));
  const known = new Set(customers.requests.map(({ key }) => key));
  const addresses = new Set(customers.addresses.keys());
  await customers.register(random.pick(customers.customers));
  await lab.work(1 + random.integer(2));
  await customers.settled();
  await customers.follow();
  await pausedFor(lab, () => postgres.replace(DATABASE, COPY));
  await untilClosed(lab);
  await must(lab, "recover", "--apply");
  await assignAddresses(lab, addresses);
  await untilCaughtUp(lab);
  await linkPayments(lab, known);
  await assignDeposits(lab);
  const left = await command(lab, "ledger", "open");
  if (left.code !== 0) throw new Error(`left open: ${left.stdout}`);
  customers.forgetEvents();
}

/**
 * What the operator types, again while there is no node: others on this chain kill it.
 * @returns what it came to
 */
async function command(lab: LabExchange, ...words: readonly string[]) {
  for (;;) {
    const result = await lab.command(...words);
    if (!result.stderr.includes("no connection to ")) return result;
    await pause(RETRY_MS);
  }
}

/** The same of a command that must not fail. */
async function must(lab: LabExchange, ...words: readonly string[]): Promise<void> {
  const { code, stdout, stderr } = await command(lab, ...words);
  if (code !== 0) throw new Error(`causeway ${words.join(" ")}: ${code} ${stdout}${stderr}`);
}

/** Stops every process, does it, and begins them again; they need not get ready. */
async function pausedFor(lab: LabExchange, work: () => Promise<void>): Promise<void> {
  for (const { process } of lab.members) await process.stop("SIGTERM");
  await work();
  for (const { process } of lab.members) await process.start();
}

async function untilClosed(lab: LabExchange): Promise<void> {
  const isClosed = async () => {
    const states = await Promise.all(lab.members.map((member) => lab.readiness(member)));
    return states.every((state) => state.startsWith("503"));
  };
  await until(isClosed, { timeoutMs: 60_000, what: "an older ledger is closed" });
}

/** Deposit addresses that were given out behind the copy have no customer until a person says so. */
async function assignAddresses(lab: LabExchange, known: ReadonlySet<string>): Promise<void> {
  for (const [address, customer] of lab.customers.addresses) {
    if (known.has(address)) continue;
    const words = ["--customer", customer, "--with-deposits", "--reason", REASON];
    await must(lab, "ledger", "assign-address", address, ...words);
  }
}

/** Customers must have their deposits back before their payouts are booked again. */
async function untilCaughtUp(lab: LabExchange): Promise<void> {
  const head = (await lab.customers.chain.height()) + 2;
  const isPassed = async () => {
    const [row] = await lab.query<{ height: string }>(`SELECT height FROM watch_cursor`);
    return Number(row?.height ?? -1) >= head;
  };
  await until(isPassed, { timeoutMs: 60_000, what: "the watcher has caught up" });
}

/**
 * Each payment that only the chain remembers is linked with the request that it was: before the
 * client asks again, or after its repeat was frozen.
 */
async function linkPayments(lab: LabExchange, known: ReadonlySet<string>): Promise<void> {
  const { customers, random } = lab;
  const head = await customers.chain.height();
  const blocks = await customers.chain.blocks(lab.startHeight, head);
  const mined = new Map(
    blocks
      .flatMap(({ transactions }) => transactions)
      .filter(({ from }) => from === customers.hotWallet)
      .map(({ hash, to, valueAtoken }) => [`${valueAtoken} to ${to}`, hash]),
  );
  for (const request of customers.requests) {
    const hash = mined.get(`${request.amountAtoken} to ${request.to}`);
    const isLost = !known.has(request.key) && hash !== undefined;
    const { key, customerId: customer } = request;
    if (isLost && random.integer(2) === 0) {
      const words = ["--customer", customer, "--idempotency-key", key, "--reason", REASON];
      await must(lab, "ledger", "link-payment", hash, ...words);
    }
    request.id = await customers.ask(request);
    const state = await settledOrFrozen(lab, request.id);
    if (state !== "frozen") continue;
    if (hash === undefined) {
      // It waited in the copy; nobody cancelled it since.
      await must(lab, "withdrawals", "release", request.id, "--not-paid");
      customers.released.add(request.id);
    } else {
      const words = ["--withdrawal", request.id, "--reason", REASON];
      await must(lab, "ledger", "link-payment", hash, ...words);
    }
  }
}

/** What customers withdrew to addresses without one: gas for all that the ledger knew then. */
async function assignDeposits(lab: LabExchange): Promise<void> {
  const rows = await lab.query<{ id: string; address: string }>(
    `SELECT id, address FROM deposit WHERE status = 'suspense'`,
  );
  for (const { id, address } of rows) {
    const customer = lab.customers.addresses.get(address);
    if (customer === undefined) continue;
    const words = ["--customer", customer, "--reason", REASON];
    await must(lab, "ledger", "assign-deposit", id, ...words);
  }
}

/** Where a request that was asked for again comes to rest. */
async function settledOrFrozen(lab: LabExchange, id: string): Promise<string> {
  let status = "";
  const isAtRest = async () => {
    const rows = await lab.query<{ status: string }>(
      `SELECT status FROM withdrawal WHERE id = $1`,
      [id],
    );
    status = rows[0]?.status ?? "";
    return ["settled", "failed", "frozen"].includes(status);
  };
  await until(isAtRest, { timeoutMs: 60_000, what: `${id} comes to rest` });
  return status;
}
