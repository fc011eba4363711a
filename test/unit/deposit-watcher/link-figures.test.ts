/** What a watcher's page tells of the chain of hashes while another watcher links. */
import { expect, it } from "@jest/globals";
import { runLinkLoop } from "../../../deposit-watcher/link-loop.js";
import { createMetrics } from "../../../runtime/process/metrics.js";
import type { SqlDatabase } from "../../../runtime/sql/sql.js";
import { silentLog } from "../../helpers/services/ledger.js";
import { until } from "../../helpers/until.js";

it("is nothing of this process's: what it saw last grows old", async () => {
  const metrics = createMetrics({ processMetrics: false });
  let asked = 0;
  // Every statement finds the lease with another watcher.
  const query = async () => {
    asked += 1;
    return [];
  };
  const controller = new AbortController();
  const running = runLinkLoop(
    {
      database: { query } as unknown as SqlDatabase,
      owner: "standby",
      log: silentLog,
      metrics,
      clock: { nowMs: () => 0, monotonicMs: () => 0 },
    },
    controller.signal,
  );
  try {
    metrics.gauge("causeway_chain_links", "as the loop left them when it held the lease").set(7);
    await until(() => asked > 1, { timeoutMs: 10_000 });
    expect(await metrics.page()).not.toMatch(/^causeway_chain_/m);
  } finally {
    controller.abort();
    await running;
  }
});
