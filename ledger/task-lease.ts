/**
 * Leases of background work that one process does for all: whoever holds one works, the others wait
 * for its end. A lease only saves work: what it does is compare-and-set by itself, so that a holder
 * that was stopped and comes back changes nothing twice.
 */
import { AppError } from "../chain/errors.js";
import type { Sql } from "../runtime/sql/sql.js";
import { keepsOthersOut } from "./lease.js";

/** Another process does the work now. */
export class TaskLeaseLostError extends AppError<"TASK_LEASE_LOST"> {}

/** Work that has a lease. */
const LEASED_TASKS = ["webhooks", "link-chain", "reconcile", "treasury"] as const;

/** One of `LEASED_TASKS`. */
export type LeasedTask = (typeof LEASED_TASKS)[number];

/** Who wants to hold what. */
export interface LeaseHolder {
  readonly task: LeasedTask;
  /** Random name of the process' life. */
  readonly owner: string;
}

/**
 * Takes the lease, or holds it on.
 * @param lease.leaseMs the same for whoever wants the task
 * @returns false while another holds it
 */
export async function holdLease(
  sql: Sql,
  { task, owner, leaseMs }: LeaseHolder & { readonly leaseMs: number },
): Promise<boolean> {
  const rows = await sql.query(
    `INSERT INTO task_lease (task, owner, expires_at)
     VALUES ($1, $2, clock_timestamp() + $3::integer * interval '1 millisecond')
     ON CONFLICT (task) DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at
        WHERE task_lease.owner = excluded.owner
           OR NOT ${keepsOthersOut("task_lease.expires_at", "$3::integer")}
     RETURNING task`,
    [task, owner, leaseMs],
  );
  return rows.length > 0;
}

/**
 * Gives the lease back, so that the next holder need not wait for its end: at an orderly stop, and where this
 * process cannot work for lack of what another may have.
 */
export async function releaseLease(sql: Sql, { task, owner }: LeaseHolder): Promise<void> {
  await sql.query(`UPDATE task_lease SET expires_at = '-infinity' WHERE task = $1 AND owner = $2`, [
    task,
    owner,
  ]);
}
