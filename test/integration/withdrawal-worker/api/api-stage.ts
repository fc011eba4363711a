/** The withdrawal API as a server of its own, for tests that ask it over HTTP. */
import { resolve } from "node:path";
import type { ChainAccounts } from "../../../../chain/chain-accounts.js";
import { singleKeyAccess } from "../../../helpers/services/single-key.js";
import { createHttpServer, type HttpServer } from "../../../../runtime/http/http-server.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import { systemClock } from "../../../../runtime/process/clock.js";
import { createMetrics, type Metrics } from "../../../../runtime/process/metrics.js";
import { AcceptQueue } from "../../../../withdrawal-worker/api/accept-queue.js";
import {
  createWithdrawalRoutes,
  type WithdrawalApiParts,
} from "../../../../withdrawal-worker/api/routes.js";
import { createWalletRoutes } from "../../../../withdrawal-worker/api/wallet-routes.js";
import { mapWithdrawalError } from "../../../../withdrawal-worker/api/api-errors.js";
import { freshAddress, House } from "../../../helpers/exchange/house.js";

/** Headers of who is let in. */
export const bearer = { Authorization: "Bearer k3y" };

/** Contract of a listed token, of which nobody has any. */
export const GOLD = freshAddress();

/** A request's body; the destination is a fresh one. */
export const bodyOf = (fields: Record<string, unknown> = {}) => ({
  customerId: "alice",
  asset: "TOKEN",
  to: freshAddress(),
  amountAtoken: "1000",
  ...fields,
});

/** The withdrawal API over a house; `bearer` is let in. */
export function createApi(
  house: House,
  {
    minimumAtoken = 0n,
    keyedMetrics,
    tokens = [{ symbol: "GOLD", contract: GOLD }],
    chainAccounts,
    policy = { current: async () => house.files.policy },
  }: {
    minimumAtoken?: bigint;
    keyedMetrics?: Metrics;
    tokens?: WithdrawalApiParts["tokens"];
    chainAccounts?: ChainAccounts;
    policy?: WithdrawalApiParts["policy"];
  } = {},
): HttpServer {
  return createHttpServer({
    name: "withdrawal-api",
    apiSpecPath: resolve("openapi/withdrawal.yaml"),
    listen: { host: "127.0.0.1", port: 0 },
    routes: [
      ...createWithdrawalRoutes({
        database: house.database,
        accept: new AcceptQueue(house.database, {
          onAccepted: () => undefined,
          minimumAtoken,
          policy,
          isStopped: () => false,
          clock: systemClock,
          signal: new AbortController().signal,
        }),
        policy,
        chainId: 6940n,
        tokens,
        ...(chainAccounts === undefined ? {} : { chainAccounts: () => chainAccounts }),
        onCancelled: () => undefined,
      }),
      ...createWalletRoutes(house.database),
    ],
    access: singleKeyAccess("k3y"),
    mapError: mapWithdrawalError,
    readiness: () => ({ ready: true }),
    log: createLogger({ component: "test", level: "silent" }),
    metrics: createMetrics({ processMetrics: false }),
    ...(keyedMetrics === undefined ? {} : { keyedMetrics }),
    bodyLimitBytes: 4_096,
  });
}
