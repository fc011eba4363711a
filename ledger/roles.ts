/**
 * The database's roles: the owner migrates, and each service has a role that may read everything
 * and write only what its work writes. No service can alter a table, switch off a trigger, delete a
 * row or empty a table; no role of a service is a superuser or inherits another's rights.
 */
import { createHash, createHmac, pbkdf2Sync, randomBytes } from "node:crypto";
import type { Sql, SqlDatabase } from "../runtime/sql/sql.js";
import { LedgerError } from "./errors.js";

/** Services with a role of their own. */
export const LEDGER_SERVICES = ["watcher", "worker", "operator"] as const;

/** One of `LEDGER_SERVICES`. */
export type LedgerService = (typeof LEDGER_SERVICES)[number];

/** Name of a service's role: roles belong to the server, so the database's name is in it. */
export function ledgerRole(database: string, service: LedgerService): string {
  return `${database}_${service}`;
}

/** Name of the indexer's role. It has schemas of its own and sees nothing of the ledger. */
export function indexerRole(database: string): string {
  return `${database}_indexer`;
}

/** PostgreSQL cuts names behind so many bytes, without a fault. */
const CUT_BYTES = 63;

/** A longer name's roles would be cut: of 62 bytes all services would be one role, with all rights. */
const MOST_NAME_BYTES =
  CUT_BYTES - Math.max(...LEDGER_SERVICES.map((service) => ledgerRole("", service).length));

/** What a service writes: tables it adds rows to, and tables (or `table.column`) that it changes. */
interface Writes {
  readonly insert: readonly string[];
  readonly update: readonly string[];
  /** Sequences that defaults draw from. */
  readonly draw: readonly string[];
  /** Functions that do more than their caller may. */
  readonly call: readonly string[];
  /** Tables that it does not even read. */
  readonly hidden: readonly string[];
}

/** Ended deliveries of webhooks are forgotten. */
const PRUNE = "prune_webhook_deliveries(integer, integer)";

/** Old reconciliations are forgotten. */
const PRUNE_RUNS = "prune_reconcile_runs(integer, integer)";

/** Positions of lists go on behind all that were told. */
const SKIP = "skip_told_positions()";

/** Balances follow postings; called by a trigger alone. */
const MOVE = "move_customer_balances()";

const WATCHER: Writes = {
  insert: [
    "meta",
    "customer",
    "journal_entry",
    "posting",
    "event",
    "watch_cursor",
    "deposit_address",
    "deposit",
    "incident",
    "foreign_outflow",
    "possible_payment",
    "signing_freeze",
    "api_call",
    "remembered_ledger",
    // It serves and sends webhooks.
    "webhook",
    "webhook_secret",
    "webhook_delivery",
    "task_lease",
    "chain_link",
    "account_sum",
    "reconcile_run",
    "asset",
    "token_state",
    "token_state_change",
    "token_sighting",
    // The home's wallets, at the first start that sees them.
    "wallet",
    "wallet_change",
    "sweep_due",
  ],
  update: [
    // What the chain shows of sweeps, gas and refills is booked with the blocks.
    "sweep",
    "sweep_due",
    "treasury_move.state",
    "refill_request",
    "wallet.past_booked",
    "watch_lease",
    "chain_cursor",
    "account_sum",
    "account_sum_cursor",
    "webhook",
    "webhook_secret",
    "webhook_delivery",
    "task_lease",
    // Who is to book locks balances: that takes the right to change some column, and a rule refuses this.
    "customer_balance.customer_id",
    "event_counter",
    "watch_cursor",
    "deposit_address.backfilled",
    "deposit",
    "incident",
    "signing_freeze",
    "token_state",
  ],
  draw: [],
  call: [PRUNE, PRUNE_RUNS],
  hidden: [],
};

const WORKER: Writes = {
  insert: [
    "meta",
    "journal_entry",
    "posting",
    "event",
    "withdrawal",
    "withdrawal_history",
    "withdrawal_doubt",
    "hot_wallet",
    "nonce_slot",
    "withdrawal_attempt",
    "payout_failure",
    "signing_freeze",
    "policy_version",
    "policy_activation",
    "policy_listing",
    "policy_decision",
    "withdrawal_approval",
    "screening_verdict",
    "api_call",
    // It closes a ledger that is behind what its home remembers.
    "incident",
    "remembered_ledger",
    "wallet",
    "wallet_change",
    // Through its API a person stops more than is stopped; a trigger refuses the other way.
    "kill_switch",
    "task_lease",
    "sweep",
    "sweep_attempt",
    "sweep_due",
    "treasury_move",
    "cold_address",
    "refill_request",
  ],
  update: [
    "task_lease",
    "sweep",
    "sweep_due",
    "treasury_move.state",
    "refill_request",
    // Registering a wallet locks the cursor: that takes the right to change some column of it.
    "watch_cursor.single",
    "customer_balance.customer_id",
    "event_counter",
    "withdrawal",
    "hot_wallet",
    "nonce_slot",
    "signing_freeze",
  ],
  draw: ["withdrawal_position"],
  call: [],
  hidden: ["webhook_secret"],
};

/**
 * A person decides about what either service left open, so the operator may write both's; only a
 * person makes and ends API keys.
 */
const OPERATOR: Writes = {
  insert: [
    ...new Set([...WATCHER.insert, ...WORKER.insert]),
    "foreign_transaction_acknowledged",
    "api_key",
    "api_key_signature",
    "address_assignment",
    "recovered_payment",
    "withdrawal_clearance",
    "operator_decision",
    "operator_decision_outcome",
    "chain_rewind",
    "statement_end",
  ],
  update: [
    ...new Set([...WATCHER.update, ...WORKER.update]),
    "api_key.revoked_at",
    "recovered_payment",
    "operator_decision",
    "wallet.status",
    "wallet.since",
    "wallet.reason",
    "wallet.operator",
  ],
  draw: WORKER.draw,
  call: [PRUNE, SKIP],
  hidden: [],
};

const WRITES: Readonly<Record<LedgerService, Writes>> = {
  watcher: WATCHER,
  worker: WORKER,
  operator: OPERATOR,
};

/**
 * Makes the roles that are missing, sets the passwords, and gives each role the rights of this
 * version and no other, in one transaction. Run by the owner, who needs CREATEROLE, after a
 * migration; may be repeated.
 * @throws ROLE_UNSAFE, SqlError
 */
export async function grantLedgerRoles(
  database: SqlDatabase,
  passwords: Readonly<Record<LedgerService, string>>,
): Promise<void> {
  const name = await readName(database);
  await database.transaction(async (tx) => {
    await execute(tx, [
      ["REVOKE ALL ON DATABASE %I FROM PUBLIC", [name]],
      ["REVOKE CREATE ON SCHEMA public FROM PUBLIC", []],
      // Everybody may call what is new, the indexer's role as well.
      [`REVOKE EXECUTE ON FUNCTION ${PRUNE}, ${PRUNE_RUNS}, ${SKIP}, ${MOVE} FROM PUBLIC`, []],
    ]);
    const former: LedgerService[] = [];
    for (const service of LEDGER_SERVICES) {
      const role = ledgerRole(name, service);
      if (await writeRole(tx, role, passwords[service])) former.push(service);
    }
    const columnsOf = await readWritableColumns(tx);
    await execute(tx, rightsOf(name, { columnsOf, former }));
    for (const role of LEDGER_SERVICES.map((service) => ledgerRole(name, service))) {
      await refuseMaker(tx, role);
      await refuseTemporary(tx, role);
    }
  });
}

/** The database's name, which those of its roles begin with. Throws ROLE_UNSAFE where they would be cut. */
async function readName(database: SqlDatabase): Promise<string> {
  const [current] = await database.query<{ name: string }>("SELECT current_database() AS name");
  if (current === undefined) throw new TypeError("the database has no name");
  const sizeBytes = Buffer.byteLength(current.name, "utf8");
  if (sizeBytes <= MOST_NAME_BYTES) return current.name;
  const message =
    `the database's name has ${sizeBytes} bytes, and the services' roles would be called as it ` +
    `with up to ${CUT_BYTES - MOST_NAME_BYTES} more: PostgreSQL cuts names at ${CUT_BYTES}, so that ` +
    `two services could be one role. Give it a name of at most ${MOST_NAME_BYTES} bytes ` +
    "(ALTER DATABASE ... RENAME TO), and migrate again";
  throw new LedgerError("ROLE_UNSAFE", message, { details: { sizeBytes } });
}

/**
 * Roles of services go by the database's name, and rights go by the roles: behind a new name, or in a copy,
 * those of the former one go on writing. Their rights are the services' until these log in with the new
 * roles, so they are not taken away here.
 * @throws ROLE_UNSAFE naming them, and what takes the rights from them
 */
export async function refuseFormerRoles(database: SqlDatabase): Promise<void> {
  const [found] = await database.query<{ name: string; roles: string[]; quoted: string | null }>(
    `SELECT current_database() AS name, coalesce(array_agg(f.name ORDER BY f.name), '{}') AS roles,
            string_agg(quote_ident(f.name), ', ' ORDER BY f.name) AS quoted
       FROM (SELECT DISTINCT r.rolname::text AS name
               FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
              CROSS JOIN LATERAL (VALUES (c.relacl), (a.attacl)) AS given (acl)
              CROSS JOIN LATERAL aclexplode(given.acl) AS g
               JOIN pg_roles r ON r.oid = g.grantee
              WHERE c.oid = 'public.posting'::regclass AND g.privilege_type = 'INSERT'
                AND g.grantee <> c.relowner AND r.rolname ~ '_(watcher|worker|operator)$'
                AND r.rolname <> ALL (SELECT (current_database() || '_' || s)::name
                                        FROM unnest($1::text[]) AS s)) AS f`,
    [LEDGER_SERVICES],
  );
  if (found === undefined || found.quoted === null) return;
  const { name, roles, quoted } = found;
  const message =
    `the services' roles have their rights, but ${roles.join(", ")} may still write this ledger's ` +
    "tables, as the database had another name or is a copy: let the services log in as " +
    `${ledgerRole(name, "watcher")} and so on, say REVOKE ALL ON ALL TABLES IN SCHEMA public ` +
    `FROM ${quoted}, and migrate again`;
  throw new LedgerError("ROLE_UNSAFE", message, { details: { roles } });
}

/**
 * Columns of each table but those that the server numbers: who could name a number himself would put a row
 * behind all that are to come, as the last word of the kill switch is.
 */
async function readWritableColumns(tx: Sql): Promise<ReadonlyMap<string, readonly string[]>> {
  const rows = await tx.query<{ name: string; columns: readonly string[] }>(
    `SELECT c.relname AS name, array_agg(a.attname::text ORDER BY a.attnum) AS columns
       FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
      WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
        AND a.attnum > 0 AND NOT a.attisdropped AND a.attidentity = ''
      GROUP BY c.relname`,
  );
  return new Map(rows.map(({ name, columns }) => [name, columns]));
}

/**
 * Makes the indexer's role or sets its password. It makes its schemas itself, and temporary tables
 * to fill them from; of the ledger it may not read a row. Run by the owner; may be repeated.
 * @throws ROLE_UNSAFE, SqlError
 */
export async function grantIndexerRole(database: SqlDatabase, password: string): Promise<void> {
  const name = await readName(database);
  await database.transaction(async (tx) => {
    const role = indexerRole(name);
    await writeRole(tx, role, password);
    await execute(tx, [
      ["GRANT CONNECT, CREATE, TEMPORARY ON DATABASE %I TO %I", [name, role]],
      ["REVOKE ALL ON SCHEMA public FROM %I", [role]],
      ["REVOKE ALL ON ALL TABLES IN SCHEMA public FROM %I", [role]],
    ]);
    await refuseMaker(tx, role);
  });
}

/**
 * What a role makes in `public` may be called in the place of what the ledger means by a name. Up to
 * PostgreSQL 14 that schema is not the database owner's: taking rights from it is a warning there, and they
 * stay.
 */
async function refuseMaker(tx: Sql, role: string): Promise<void> {
  const [found] = await tx.query<{ makes: boolean; owner: string }>(
    `SELECT has_schema_privilege($1, 'public', 'CREATE') AS makes, quote_ident(current_user) AS owner`,
    [role],
  );
  if (found?.makes !== true) return;
  const message =
    `the role ${role} may make tables and functions in the schema public: as a superuser in this database, ` +
    `say ALTER SCHEMA public OWNER TO ${found.owner}, and migrate again`;
  throw new LedgerError("ROLE_UNSAFE", message, { details: { role } });
}

/**
 * A database gives everybody the right to make temporary tables, which come before all others in the session
 * that made them. Who does not own it takes that from nobody: it is a warning, and the right stays.
 */
async function refuseTemporary(tx: Sql, role: string): Promise<void> {
  const [found] = await tx.query<
    Record<"name" | "owner" | "self", string> & Record<"makes" | "owns", boolean>
  >(
    `SELECT has_database_privilege($1, oid, 'TEMPORARY') OR has_database_privilege($1, oid, 'CREATE')
              AS makes,
            pg_has_role(datdba, 'USAGE') AS owns, quote_ident(datname) AS name,
            datdba::regrole::text AS owner, quote_ident(current_user) AS self
       FROM pg_database WHERE datname = current_database()`,
    [role],
  );
  if (found?.makes !== true) return;
  const { name, owner, owns, self } = found;
  const remedy = owns
    ? "take it out of the roles that give it that"
    : `as its owner (${owner}) or a superuser say ALTER DATABASE ${name} OWNER TO ${self}`;
  const message =
    `the role ${role} may make temporary tables or schemas in the database: ${remedy}, ` +
    "and migrate again (docs/operations.md, Database roles)";
  throw new LedgerError("ROLE_UNSAFE", message, { details: { role } });
}

/** @returns whether there was such a role before */
async function writeRole(tx: Sql, role: string, password: string): Promise<boolean> {
  const [known] = await tx.query<{ unsafe: boolean }>(
    `SELECT rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls AS unsafe
       FROM pg_roles WHERE rolname = $1`,
    [role],
  );
  if (known?.unsafe === true) {
    const message = `the role ${role} has rights that no service may have: take them from it`;
    throw new LedgerError("ROLE_UNSAFE", message, { details: { role } });
  }
  // The server is given the verifier: a password would stand in its log of statements.
  const verifier = scramVerifier(password);
  const statement =
    known === undefined
      ? "CREATE ROLE %I LOGIN NOINHERIT NOCREATEDB NOCREATEROLE PASSWORD %L"
      : "ALTER ROLE %I LOGIN PASSWORD %L";
  await execute(tx, [[statement, [role, verifier]]]);
  return known !== undefined;
}

/** A statement with `%I` for names and `%L` for texts, and what is put in. */
type Template = readonly [text: string, values: readonly string[]];

/** Where roles have rights of a former release; a role that was just made has none. */
const RIGHTS_BEFORE = [
  "SCHEMA public",
  "ALL TABLES IN SCHEMA public",
  "ALL SEQUENCES IN SCHEMA public",
  "ALL FUNCTIONS IN SCHEMA public",
];

/**
 * What gives each service's role the rights to its writes, to reading what is not hidden, and to nothing
 * else. What several may is one statement: each writes anew what a table, or each of its columns, is open to.
 * @param options.former services whose roles were there before
 */
function rightsOf(
  database: string,
  {
    columnsOf,
    former,
  }: {
    readonly columnsOf: ReadonlyMap<string, readonly string[]>;
    readonly former: readonly LedgerService[];
  },
): Template[] {
  const named = (services: readonly LedgerService[], text: string, names: readonly string[] = []) =>
    [
      `${text} ${services.map(() => "%I").join(", ")}`,
      [...names, ...services.map((service) => ledgerRole(database, service))],
    ] as const;
  const toAll = (text: string, names?: readonly string[]) => named(LEDGER_SERVICES, text, names);
  const each = (
    kind: keyof Writes,
    statement: (place: string) => readonly [text: string, names?: readonly string[]],
  ): Template[] =>
    [...new Set(LEDGER_SERVICES.flatMap((service) => WRITES[service][kind]))].map((place) => {
      const having = LEDGER_SERVICES.filter((service) => WRITES[service][kind].includes(place));
      return named(having, ...statement(place));
    });
  return [
    ...(former.length === 0 ? [] : ["DATABASE %I", ...RIGHTS_BEFORE]).map((place) =>
      named(former, `REVOKE ALL ON ${place} FROM`, place.includes("%I") ? [database] : []),
    ),
    toAll("GRANT CONNECT ON DATABASE %I TO", [database]),
    toAll("GRANT USAGE ON SCHEMA public TO"),
    toAll("GRANT SELECT ON ALL TABLES IN SCHEMA public TO"),
    // Whether numbers are behind what rows have (`moveNumbersOn`): neither drawn by it nor moved.
    toAll("GRANT SELECT ON ALL SEQUENCES IN SCHEMA public TO"),
    ...each("hidden", (table) => ["REVOKE SELECT ON %I FROM", [table]]),
    ...each("insert", (table) => {
      const columns = columnsOf.get(table) ?? [];
      const places = columns.map(() => "%I").join(", ");
      return [`GRANT INSERT (${places}) ON %I TO`, [...columns, table]];
    }),
    ...each("update", (place) => {
      const [table = "", column] = place.split(".");
      return column === undefined
        ? ["GRANT UPDATE ON %I TO", [table]]
        : ["GRANT UPDATE (%I) ON %I TO", [column, table]];
    }),
    ...each("draw", (sequence) => ["GRANT USAGE ON SEQUENCE %I TO", [sequence]]),
    ...each("call", (called) => [`GRANT EXECUTE ON FUNCTION ${called} TO`]),
  ];
}

/**
 * Runs statements about roles and rights, which take no parameters: the server itself quotes what is
 * put in. All of them in two round trips, because each service has some sixty.
 */
async function execute(tx: Sql, templates: readonly Template[]): Promise<void> {
  const rows = await tx.query<{ statement: string }>(
    `SELECT format(t.template ->> 0, VARIADIC ARRAY(SELECT jsonb_array_elements_text(t.template -> 1)))
            AS statement
       FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS t(template, place) ORDER BY place`,
    [JSON.stringify(templates)],
  );
  if (rows.length !== templates.length) throw new TypeError("the server formatted too little");
  await tx.query(rows.map(({ statement }) => statement).join(";\n"));
}

const SCRAM_ITERATIONS = 4_096;

/** What PostgreSQL keeps of a password (RFC 5802, RFC 7677; pg_authid.rolpassword). */
function scramVerifier(password: string): string {
  const salt = randomBytes(16);
  const salted = pbkdf2Sync(password, salt, SCRAM_ITERATIONS, 32, "sha256");
  const keyOf = (name: string) => createHmac("sha256", salted).update(name).digest();
  const stored = createHash("sha256").update(keyOf("Client Key")).digest();
  const parts = [salt, stored, keyOf("Server Key")].map((bytes) => bytes.toString("base64"));
  return `SCRAM-SHA-256$${SCRAM_ITERATIONS}:${parts[0]}$${parts[1]}:${parts[2]}`;
}
