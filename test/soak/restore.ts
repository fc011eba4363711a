/**
 * Rounds after which the database is behind: it was put back from an older copy, or a standby took
 * over that had not got the last commits. The documented commands recover it, and an operator who
 * knows what customers asked for decides what is left (docs/restore.md).
 */
import { pause } from "../helpers/faults/bench.js";
import { until } from "../helpers/until.js";
import { describeMovement, movementOf } from "../helpers/faults/movements.js";
import type { Request } from "../helpers/faults/promises.js";
import type { LabExchange } from "../helpers/faults/lab/lab-exchange.js";
import type { OwnPostgres } from "../helpers/faults/lab/own-postgres.js";
import { explainMoves } from "./lost-moves.js";
import { command, must, REASON, untilCaughtUp, untilClosed } from "./operator.js";

const DATABASE = "causeway";
const COPY = "older";

/** By then the database is behind, on a machine that is not too busy. */
const LONG_DEADLINE_MS = 12_000;

/** A worker has looked for what is due. */
const SCANS_MS = 1_000;

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
  const waiting = isTold ? [] : await askWhileFrozen(lab);
  await begin(postgres);
  if (waiting.length > 0) await must(lab, "withdrawals", "release");
  const known = new Set(customers.requests.map(({ key }) => key));
  const addresses = new Set([...customers.addresses.keys(), ...customers.tokenAddresses.keys()]);
  if (isTold) await customers.register(random.pick(customers.customers));
  await lab.work(1 + random.integer(2));
  await (isTold ? customers.settled() : untilEnded(lab));
  // It would find the loss: until then the nonces of the wallet alone say it.
  if (waiting.length > 0) lab.watcher.process.freeze();
  await end(postgres);
  await Promise.all(waiting.map((request) => endsUnpaid(lab, request)));
  lab.watcher.process.thaw();
  if (isTold) await untilClosed(lab);
  else await declareOnceFrozen(lab);
  await must(lab, "recover", "--apply");
  await assignAddresses(lab, addresses);
  await untilCaughtUp(lab);
  // What persons had done behind the copy is lost as well.
  if (waiting.length > 0) await command(lab, "withdrawals", "release");
  await linkPayments(lab, known);
  await explainMoves(lab);
  await assignDeposits(lab);
  const left = await command(lab, "ledger", "open");
  if (left.code !== 0) throw new Error(`left open: ${left.stdout}`);
  customers.forgetEvents();
}

/** Requests that wait in what is kept, to be paid behind it: one has a deadline, one is taken back. */
async function askWhileFrozen(lab: LabExchange): Promise<readonly Request[]> {
  const { customers } = lab;
  await customers.settled();
  await must(lab, "withdrawals", "freeze", "--reason", "a standby is left behind");
  const expiresAt = new Date(Date.now() + LONG_DEADLINE_MS).toISOString();
  const asked = [customers.plan("unwanted"), customers.plan("unwanted", { expiresAt })];
  for (const request of asked) request.id = await customers.ask(request);
  return asked;
}

/** What it waits for was paid behind what is kept: it is taken back, or due. */
async function endsUnpaid({ customers }: LabExchange, request: Request): Promise<void> {
  if (request.expiresAt === undefined) return customers.cancel(request);
  await pause(Math.max(0, Date.parse(request.expiresAt) - Date.now()) + SCANS_MS);
}

/** Every request has ended, and nobody has been told. */
async function untilEnded(lab: LabExchange): Promise<void> {
  const isEnded = async () => {
    const rows = await lab.query(
      `SELECT 1 FROM withdrawal WHERE phase NOT IN ('paid', 'unpaid') LIMIT 1`,
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
  const { addresses, tokenAddresses } = lab.customers;
  for (const [address, customer] of [...addresses, ...tokenAddresses]) {
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
      .map((transaction) => [
        describeMovement(movementOf(transaction, customers.token)),
        transaction.hash,
      ]),
  );
  const requests = [...customers.requests];
  for (const request of requests) {
    const hash = mined.get(describeMovement(request));
    const isLost = !known.has(request.key) && hash !== undefined;
    const { key, customerId: customer } = request;
    if (isLost && random.integer(2) === 0) {
      const words = ["--customer", customer, "--idempotency-key", key, "--reason", REASON];
      await must(lab, "ledger", "link-payment", hash, ...words);
    }
    const before = request.id;
    if (!(await customers.askInTime(request))) continue;
    // One that is asked for anew, nobody has taken back.
    if (request.id !== before) request.isToldCancelled = false;
    const id = String(request.id);
    const state = await settledOrFrozen(lab, id);
    if (state !== "frozen") continue;
    if (hash === undefined) {
      // It waited in the copy.
      if (request.isToldCancelled === true) {
        await must(lab, "withdrawals", "cancel", id, "--reason", REASON);
      }
      await must(lab, "withdrawals", "release", id, "--not-paid");
      customers.released.add(id);
    } else {
      const words = ["--withdrawal", id, "--reason", REASON];
      await must(lab, "ledger", "link-payment", hash, ...words);
    }
  }
}

/** What customers withdrew to addresses without one: gas for all that the ledger knew then. */
async function assignDeposits(lab: LabExchange): Promise<void> {
  const rows = await lab.query<{ id: string; address: string; hash: string }>(
    `SELECT id, address, tx_hash AS hash FROM deposit WHERE status = 'suspense'`,
  );
  for (const { id, address, hash } of rows) {
    const customer = lab.customers.ownerOf(address);
    if (customer === undefined || lab.customers.gasHashes.has(hash)) continue;
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
    return ["settled", "failed", "rejected", "cancelled", "frozen"].includes(status);
  };
  await until(isAtRest, { timeoutMs: 60_000, what: `${id} comes to rest` });
  return status;
}
