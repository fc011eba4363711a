/** What a node suggests as a price decides nothing beyond the price that is ever signed. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { hashPolicy, PERMISSIVE_POLICY } from "../../../../ledger/policy/policy.js";
import { createEvmClient } from "../../../../rpc-client/evm-client.js";
import type { JsonRpcClient } from "../../../../rpc-client/json-rpc.js";
import { systemClock } from "../../../../runtime/process/clock.js";
import { keepBands } from "../../../../withdrawal-worker/treasury/bands.js";
import { testAddress } from "../../../helpers/chains/fake-chain.js";
import { silentLog } from "../../../helpers/services/ledger.js";
import { Desk, TOKEN } from "../../recovery/desk.js";
import { LANE } from "../../recovery/desk-settings.js";
import { ANY_SWEEP } from "../treasury-bench.js";
import { createPatientClient } from "../../../helpers/exchange/patient-node.js";

let desk: Desk;
let rpc: JsonRpcClient;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
  rpc = createPatientClient(desk.chain.url);
});
afterEach(async () => {
  rpc.close();
  await desk.close();
});

it("asks for no coins of cold storage while the wallets have enough at the configured cap", async () => {
  const band = { lowUnits: 50n * TOKEN, targetUnits: 60n * TOKEN, highUnits: 200n * TOKEN };
  const rules = { ...ANY_SWEEP, coldAddress: testAddress(0xc01d), band };
  const treasury = { topUpMaxAtoken: 0n, assets: new Map([["TOKEN", rules]]) };
  const context = {
    database: desk.workerDatabase,
    rpc,
    evm: createEvmClient(rpc),
    clock: systemClock,
    log: silentLog,
    settings: { gas: LANE.gas },
  };
  // A thousand transfers at this price would take more than the wallet has.
  const { head: height } = desk.chain;
  const view = {
    height,
    blockHash: desk.chain.blockHash(height),
    suggestedPriceAtoken: 10n ** 13n,
  };
  await keepBands(context as never, {
    policy: hashPolicy({ ...PERMISSIVE_POLICY, treasury }),
    look: async () => view as never,
    isStopped: false,
    signal: desk.signal,
  });
  expect(await desk.database.query(`SELECT amount_units FROM refill_request`)).toEqual([]);
});
