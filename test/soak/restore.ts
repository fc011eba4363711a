/**
 * Rounds after which the database is behind: it was put back from an older copy, or a standby took
 * over that had not got the last commits. The documented commands recover it, and an operator who
 * knows what customers asked for decides what is left (docs/restore.md).
 */
import { until } from "../helpers/until.js";
import type { LabExchange } from "../helpers/faults/lab/lab-exchange.js";
import type { OwnPostgres } from "../helpers/faults/lab/own-postgres.js";
import { command, must, REASON, untilCaughtUp, untilClosed } from "./operator.js";

const DATABASE = "causeway";
const COPY = "older";

/** How a database gets behind. */
interface Loss {
  /** What is committed from now on will be lost. */
  readonly begin: (postgres: OwnPostgres) => Promise<void>;
  readonly end: (postgres: OwnPostgres) => Promise<void>;
  /** Clients were told of what is lost, by an address or an event. */
  readonly isTold: boolean;
}

/** The database is put back from an older copy. */
export function restoreLedger(lab: LabExchange): Promise<void> {
  return recoverFrom(lab, {
    begin: (postgres) => pausedFor(lab, () => postgres.replace(COPY, DATABASE)),
    end: (postgres) => pausedFor(lab, () => postgres.replace(DATABASE, COPY)),
    isTold: true,
  });
}

/** A standby takes over that was not waited for, under processes that go on. */
export function failOverBehind(lab: LabExchange): Promise<void> {
  return recoverFrom(lab, {
    async begin(postgres) {
      await postgres.follow({ isSynchronous: false });
      await postgres.leaveBehind();
    },
    end: () => lab.failOver(),
    isTold: lab.random.integer(2) === 0,
  });
}

/** Works behind what is kept, loses it, and recovers; resolves when the exchange is whole. */
async function recoverFrom(lab: LabExchange, { begin, end, isTold }: Loss): Promise<void> {
  const { postgres, customers, random } = lab;
  if (postgres === undefined) throw new Error("no PostgreSQL of its own");
  await lab.heal();
  if (random.integer(2) === 0) await lab.work();
  await begin(postgres);
  const known = new Set(customers.requests.map(({ key }) => key));
  const addresses = new Set(customers.addresses.keys());
  if (isTold) await customers.register(random.pick(customers.customers));
  await lab.work(1 + random.integer(2));
  await (isTold ? customers.settled() : untilEnded(lab));
  await end(postgres);
  if (isTold) await untilClosed(lab);
  else await declareOnceFrozen(lab);
  await must(lab, "recover", "--apply");
  await assignAddresses(lab, addresses);
  await untilCaughtUp(lab);
  await linkPayments(lab, known);
  await assignDeposits(lab);
  const left = await command(lab, "ledger", "open");
  if (left.code !== 0) throw new Error(`left open: ${left.stdout}`);
  customers.forgetEvents();
}

/** Every request has ended, and nobody has been told. */
async function untilEnded(lab: LabExchange): Promise<void> {
  const isEnded = async () => {
    const rows = await lab.query(
      `SELECT 1 FROM withdrawal WHERE status NOT IN ('settled', 'failed', 'rejected') LIMIT 1`,
    );
    return rows.length === 0;
  };
  await until(isEnded, { timeoutMs: 60_000, what: "every request has ended" });
}

/** Where nobody was told, the nonces of the wallet say it, and a person has to. */
async function declareOnceFrozen(lab: LabExchange): Promise<void> {
  const isFrozen = async () => (await lab.readiness(lab.worker)).startsWith("503");
  await until(isFrozen, { timeoutMs: 60_000, what: "the wallet freezes behind lost payments" });
  await command(lab, "recover", "--declare", "the standby had not got the last commits");
}

/** Stops every process, does it, and begins them again; they need not get ready. */
async function pausedFor(lab: LabExchange, work: () => Promise<void>): Promise<void> {
  for (const { process } of lab.members) await process.stop("SIGTERM");
  await work();
  for (const { process } of lab.members) await process.start();
}

/** Deposit addresses that were given out behind the copy have no customer until a person says so. */
async function assignAddresses(lab: LabExchange, known: ReadonlySet<string>): Promise<void> {
  for (const [address, customer] of lab.customers.addresses) {
    if (known.has(address)) continue;
    const words = ["--customer", customer, "--with-deposits", "--reason", REASON];
    await must(lab, "ledger", "assign-address", address, ...words);
  }
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
    return ["settled", "failed", "rejected", "frozen"].includes(status);
  };
  await until(isAtRest, { timeoutMs: 60_000, what: `${id} comes to rest` });
  return status;
}
