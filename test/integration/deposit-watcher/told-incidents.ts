/** What a watcher says of incidents, and what the ledger has of them. */
import { until } from "../../helpers/until.js";
import { type RunningWatcher, WatcherBench } from "../../helpers/services/watcher.js";

/** Until a watcher has halted by an incident of this kind. */
export async function halted({ watcher }: RunningWatcher, kind: string): Promise<void> {
  await until(() => watcher.status.incident?.kind === kind, {
    timeoutMs: 5_000,
    what: `halted by ${kind}`,
  });
}

/** All of a ledger, in their order. */
export async function incidentsOf(bench: WatcherBench): Promise<string[]> {
  const rows = await bench.ledger.database.query<{ kind: string; resolved: boolean }>(
    `SELECT kind, resolved_at IS NOT NULL AS resolved FROM incident ORDER BY id`,
  );
  return rows.map(({ kind, resolved }) => `${kind} ${resolved ? "resolved" : "open"}`);
}
