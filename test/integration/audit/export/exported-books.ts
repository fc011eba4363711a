/** A ledger with something of everything in it, its exports, and what a superuser changes behind all rules. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { parseAddress } from "../../../../chain/address.js";
import { parseHash32 } from "../../../../chain/hex.js";
import { runExportLedger, runVerifyLedger } from "../../../../cli/audit/ledger/commands.js";
import type { CommandContext } from "../../../../cli/command-context.js";
import { registerTokens } from "../../../../ledger/assets/asset-registry.js";
import { recordSightings } from "../../../../ledger/assets/token-sightings.js";
import { hashPolicy, PERMISSIVE_POLICY } from "../../../../ledger/policy/policy.js";
import { activatePolicy } from "../../../../ledger/policy/policy-store.js";
import { linkRows } from "../../../../ledger/tamper/chainer.js";
import type { SqlDatabase } from "../../../../runtime/sql/sql.js";
import { copyTestDatabase, type TestDatabase } from "../../../helpers/services/postgres.js";
import { HOT, WatcherBench } from "../../../helpers/services/watcher.js";
import { acceptOne } from "../support.js";

/** The customer with a withdrawal. */
export const BOB = "bob";

/** What a command says while it works for longer than some seconds: not on every machine. */
const PROGRESS = /^\w+: \d+ lines are (written|checked)$/;

/** What a command said, its progress left out. */
export interface Outcome {
  readonly code: number;
  readonly lines: string[];
}

/** Books that a watcher wrote on a fake chain, and a copy of them to tamper with. */
export class ExportedBooks {
  #files = 0;

  private constructor(
    readonly bench: WatcherBench,
    /** A home with what the commands read of one. */
    readonly home: string,
    readonly copy: TestDatabase,
  ) {}

  static async open(): Promise<ExportedBooks> {
    const bench = await WatcherBench.open();
    const home = mkdtempSync(join(tmpdir(), "causeway-export-"));
    const wallet = JSON.stringify({ address: HOT.slice(2) });
    mkdirSync(join(home, "config"));
    writeFileSync(join(home, "config", "hot-wallet.json"), wallet);
    const running = bench.start();
    for (const customer of ["alice", BOB]) {
      const { address } = await bench.register(customer);
      bench.pay([address, 1_000n], [address, 7n]);
    }
    bench.chain.mine();
    await bench.caughtUp();
    await running.stop();
    await acceptOne(bench.ledger.owner, BOB, 400n);
    await allowSomething(bench.ledger.owner);
    while ((await linkRows(bench.ledger.database)).linked > 0);
    return new ExportedBooks(bench, home, await copyTestDatabase(bench.ledger.url));
  }

  async close(): Promise<void> {
    await this.copy.drop();
    await this.bench.close();
    rmSync(this.home, { recursive: true, force: true });
  }

  /** Runs a command as a person does, over a database. */
  async run(
    url: string,
    work: (context: CommandContext, warn: (line: string) => void) => Promise<number>,
    json = false,
  ): Promise<Outcome> {
    const lines: string[] = [];
    const context = {
      home: this.home,
      portOffset: 0,
      json,
      env: { DATABASE_URL: url },
      signal: new AbortController().signal,
      print: (line: string) => void lines.push(line),
    };
    const code = await work(context, (line) => {
      if (!PROGRESS.test(line)) lines.push(line);
    });
    return { code, lines };
  }

  /** Exports a database. @returns the file */
  async exported(url: string): Promise<string> {
    this.#files += 1;
    const out = join(this.home, `export-${this.#files}.jsonl`);
    const { code, lines } = await this.run(url, (context, warn) =>
      runExportLedger(context, { out }, warn),
    );
    if (code !== 0) throw new Error(`not exported: ${lines.join("\n")}`);
    return out;
  }

  /** The verdict's lines, without the facts. */
  async verdictOf(file: string, head?: string): Promise<Outcome> {
    const options = head === undefined ? {} : { head };
    const outcome = await this.run(this.copy.url, (context, warn) =>
      runVerifyLedger(context, file, options, warn),
    );
    return { ...outcome, lines: outcome.lines.filter((line) => !line.startsWith("  ")) };
  }

  /** Runs statements on the copy behind all rules, as who owns the server can. */
  async tamper(...statements: readonly string[]): Promise<void> {
    const client = new Client({ connectionString: this.copy.url });
    await client.connect();
    try {
      await client.query("SET session_replication_role = replica");
      for (const statement of statements) await client.query(statement);
    } finally {
      await client.end();
    }
  }
}

/** Puts rows back as they were; what the database computes it computes again. */
export const putBack = (table: string) => `DO $$
  DECLARE columns text;
  BEGIN
    SELECT string_agg(quote_ident(attname), ', ') INTO columns FROM pg_attribute
     WHERE attrelid = '${table}'::regclass AND attnum > 0 AND NOT attisdropped
       AND attgenerated = '';
    EXECUTE format('INSERT INTO ${table} (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM kept',
      columns, columns);
  END $$`;

/** One row of each kind that allows coins to move, or says why others did not. */
async function allowSomething(owner: SqlDatabase): Promise<void> {
  const policy = hashPolicy(PERMISSIVE_POLICY);
  const [hash, address] = [`0x${"ab".repeat(32)}`, `0x${"77".repeat(20)}`];
  await activatePolicy(owner, () => policy);
  await registerTokens(owner, [
    { symbol: "GOLD", contractAddress: parseAddress(address), decimals: 6 },
  ]);
  await recordSightings(
    owner,
    [
      {
        height: 1,
        blockHash: parseHash32(hash),
        txHash: parseHash32(hash),
        txIndex: 0,
        opIndex: 1,
        contract: parseAddress(address),
        standard: "erc20",
        address: HOT,
        sender: undefined,
        claimed: 9n,
        reason: "UNKNOWN_TOKEN",
      },
    ],
    0,
  );
  await owner.query(
    `INSERT INTO policy_listing (customer_id, destination, listed) VALUES ('alice', $1, true)`,
    [address],
  );
  await owner.query(
    `INSERT INTO withdrawal_approval (withdrawal_id, key_id, decision, reason, policy_hash, digest)
     SELECT id, 'ann', 'approve', 'as asked', $1, repeat('0', 64) FROM withdrawal`,
    [policy.hash],
  );
  await owner.query(
    `INSERT INTO screening_verdict (withdrawal_id, verdict, reference)
     SELECT id, 'allow', 'case 1' FROM withdrawal`,
  );
  await owner.query(
    `INSERT INTO kill_switch (level, reason, set_by) VALUES ('stop-new', 'drill', 'ann')`,
  );
  await decideSomething(owner, hash);
}

/** What persons decide about the books, a wallet and the chain; one more decision waits. */
async function decideSomething(owner: SqlDatabase, hash: string): Promise<void> {
  await owner.query(
    `INSERT INTO operator_decision (kind, key, terms, reason, needs_second, status, proposed_by)
     SELECT 'adjustment', key, '{"action": "adjust"}', 'as agreed', true, 'proposed', 'ann'
       FROM unnest(ARRAY['made', 'waiting']) AS key`,
  );
  await owner.query(
    `UPDATE operator_decision SET status = 'done', decided_by = 'bea', decided_at = now()
      WHERE key = 'made'`,
  );
  await owner.query(
    `UPDATE wallet SET status = 'draining', reason = 'rotated', operator = 'ann'
      WHERE place = 1`,
  );
  await owner.query(
    `INSERT INTO foreign_transaction_acknowledged (wallet, tx_hash, acknowledged_by, reason)
     VALUES ($1, $2, 'ann', 'a payment by hand')`,
    [HOT, hash],
  );
  // Of blocks that are not there: nothing that is read here counts by it.
  await owner.query(
    `INSERT INTO chain_rewind (id, from_height, from_hash, to_height, to_hash, evidence, operator)
     VALUES (1, 1001, $1, 1000, $1, '{}', 'ann')`,
    [hash],
  );
}
