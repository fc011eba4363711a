/** The deposit API with API keys of a ledger, and the commands that make them: what tests of keys share. */
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { LedgerCommand } from "../../../../cli/ledger/ledger-tools.js";
import { AddressBook } from "../../../../deposit-watcher/address-book.js";
import { mapDepositError } from "../../../../deposit-watcher/api/api-errors.js";
import { createDepositRoutes } from "../../../../deposit-watcher/api/routes.js";
import { KeyRing } from "../../../../ledger/access/key-ring.js";
import { LedgerGuard } from "../../../../ledger/guard/ledger-guard.js";
import { createDataApiClient } from "../../../../rpc-client/data-api/data-api-client.js";
import { createEvmClient } from "../../../../rpc-client/evm-client.js";
import { createJsonRpcClient } from "../../../../rpc-client/json-rpc.js";
import { createHttpServer, type HttpServer } from "../../../../runtime/http/http-server.js";
import { createMetrics } from "../../../../runtime/process/metrics.js";
import type { SqlDatabase } from "../../../../runtime/sql/sql.js";
import { roleUrl, silentLog, type TestLedger } from "../../../helpers/services/ledger.js";
import { derivation, HOT } from "../../../helpers/services/watcher.js";

/** The home's own key. */
export const FILE_KEY = "the-key-of-the-home";

/** Name of the figure that `/metrics` keeps for keys. */
export const BUSINESS_FIGURE = "causeway_test_business";

/** A folder that is a home as far as these tests need one. */
export function makeHome(): string {
  const home = mkdtempSync(join(tmpdir(), "causeway-keys-"));
  mkdirSync(join(home, "config"));
  writeFileSync(join(home, "config", "hot-wallet.json"), JSON.stringify({ address: HOT.slice(2) }));
  return home;
}

/** The deposit API, in the watcher's role; keys are asked for in a database of its own. */
export async function createKeyedApi({
  ledger,
  home,
  asked,
  nowMs,
}: {
  readonly ledger: TestLedger;
  readonly home: string;
  readonly asked: SqlDatabase;
  readonly nowMs: () => number;
}): Promise<HttpServer> {
  // Asked by endpoints that these tests do not call.
  const url = "http://127.0.0.1:1";
  const node = createEvmClient(createJsonRpcClient({ url }));
  const source = createDataApiClient({ url, network: { blockchain: "token", network: "x" } });
  const clock = { nowMs, monotonicMs: nowMs };
  return createHttpServer({
    name: "deposit-api",
    apiSpecPath: fileURLToPath(new URL("../../../../openapi/deposit.yaml", import.meta.url)),
    listen: { host: "127.0.0.1", port: 0 },
    routes: createDepositRoutes({
      database: ledger.database,
      derivation,
      guard: await LedgerGuard.open({ database: ledger.database, home, reporter: "test" }),
      tokens: [],
      chain: { node, source, watched: new AddressBook() },
      headHeight: () => 7,
      onRegistered: () => undefined,
    }),
    access: new KeyRing({ database: asked, fileKey: FILE_KEY, service: "deposit-api", clock }),
    mapError: mapDepositError,
    readiness: () => ({ ready: true }),
    log: silentLog,
    metrics: createMetrics({ processMetrics: false }),
    keyedMetrics: businessFigures(),
    bodyLimitBytes: 1_024,
  });
}

/** A figure that only a key with `metrics:read` is shown. */
function businessFigures() {
  const metrics = createMetrics({ processMetrics: false });
  metrics.gauge(BUSINESS_FIGURE, "what nobody else may see");
  return metrics;
}

/** What a command of an operator gets. */
export function commandOver({
  ledger,
  home,
  json,
  printed,
}: {
  readonly ledger: TestLedger;
  readonly home: string;
  readonly json: boolean;
  readonly printed: string[];
}): LedgerCommand {
  return {
    home,
    portOffset: 0,
    json,
    env: { DATABASE_URL: roleUrl(ledger.url, "operator") },
    signal: new AbortController().signal,
    print: (text) => void printed.push(text),
  };
}
