/** The kill switch, set once more to the level that it has: for another reason, which is told. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import {
  createKillSwitch,
  ensureKillSwitchFile,
} from "../../../../withdrawal-worker/kill-switch.js";
import { createPolicyRoutes } from "../../../../withdrawal-worker/api/policy-routes.js";
import { FAKE_CHAIN_ID } from "../../../helpers/chains/fake-chain.js";
import { House } from "../../../helpers/exchange/house.js";
import { silentLog } from "../../../helpers/services/ledger.js";

let house: House;
let home: string;

beforeEach(async () => {
  house = await House.open();
  home = mkdtempSync(join(tmpdir(), "causeway-same-level-"));
});
afterEach(async () => {
  await house.close();
  rmSync(home, { recursive: true });
});

it("says why it is at its level now, in the worker as in the ledger", async () => {
  const file = join(home, "kill-switch.json");
  await ensureKillSwitchFile(file, house.database);
  const raise = createPolicyRoutes({
    database: house.database,
    policy: { current: async () => house.files.policy },
    chainId: FAKE_CHAIN_ID,
    switchFile: file,
    clock: house.clock,
    log: silentLog,
  }).find(({ method, path }) => method === "post" && path === "/v1/kill-switch");
  const caller = { keyId: "k", name: "ann", scopes: [] };
  for (const reason of ["a drill", "a key has leaked"]) {
    const body = { level: "stop-sign", reason };
    const asked = { body, caller, headers: {}, params: {}, query: {} } as never;
    const stopped = { level: "stop-sign", reason };
    const reply = await raise?.handler(asked);
    expect(reply?.body).toMatchObject({ home: stopped, ledger: stopped, homeFault: null });
    const killSwitch = createKillSwitch({ sql: house.database, file });
    expect(await killSwitch.read()).toMatchObject(stopped);
  }
});
