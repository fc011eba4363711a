/** A chain does not begin with a key for which everybody can sign; one that stands goes on with it. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createTestnet } from "../../../cli/home/network/testnet.js";
import { validatorAddress } from "../../../chain/consensus/validator-set.js";
import { present } from "../../../chain/errors.js";
import { NODE_PROCESS } from "../../../node/compose/process.js";
import { encodeGenesis, type Genesis, loadGenesis } from "../../../node/settings/genesis.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { ExecutionChain } from "../../helpers/chains/execution-chain.js";
import { kitOffset } from "../../helpers/kit.js";
import { SMALL_ORDER } from "../../helpers/keys/small-order.js";

const PORT_OFFSET = kitOffset(0);

let folder: string;
let home: string;
let genesis: Genesis;

beforeEach(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-first-start-"));
  const out = path.join(folder, "net");
  const plan = { out, validators: 2, fullNodes: 0, portOffset: PORT_OFFSET, clock: systemClock };
  home = present((await createTestnet(plan)).nodes[0], "a node").home;
  const file = path.join(home, "config", "genesis.json");
  const own = loadGenesis(file);
  const [first, second] = own.validators;
  const key = present(SMALL_ORDER[4], "the key of zeros");
  const anybodys = {
    ...present(second, "a validator"),
    address: validatorAddress(key),
    publicKey: Buffer.from(key).toString("base64"),
  };
  genesis = { ...own, validators: [present(first, "a validator"), anybodys] };
  fs.writeFileSync(file, encodeGenesis(genesis));
});

afterEach(() => fs.rmSync(folder, { recursive: true, force: true }));

/** Starts the home's node, which ends at once where it has a block. @returns what came up, ended again */
async function start(more: Readonly<Record<string, string>> = {}): Promise<readonly string[]> {
  const ending = new AbortController();
  const services = await NODE_PROCESS.start({
    home,
    portOffset: PORT_OFFSET,
    env: {
      CAUSEWAY_APP_HALT_HEIGHT: "1",
      CAUSEWAY_CONFIG_INSTRUMENTATION_PROMETHEUS: "false",
      ...more,
    },
    signal: ending.signal,
    log: createLogger({ component: "node", level: "silent" }),
    fatal: (error) => {
      throw error;
    },
    finish: () => undefined,
  });
  ending.abort();
  for (const service of services.toReversed()) await service.stop();
  return services.map(({ name }) => name);
}

describe("a genesis with a key for which everybody can sign", () => {
  it("begins no chain, and none once it has been refused", async () => {
    const refused = expect.objectContaining({
      code: "GENESIS_INVALID",
      message: expect.stringContaining(present(genesis.validators[1], "a validator").address),
    });
    await expect(start()).rejects.toEqual(refused);
    await expect(start()).rejects.toEqual(refused);
  });

  it("keeps no node from a chain that stands", async () => {
    const chain = path.join(home, "data", "chain");
    fs.mkdirSync(chain, { recursive: true });
    const standing = await ExecutionChain.open(
      loadGenesis(path.join(home, "config", "genesis.json")),
      {
        folder: chain,
        archive: true,
      },
    );
    await standing.mine([]);
    await standing.close({ keep: true });
    await expect(start()).resolves.toEqual([]);
  });

  it("keeps no node from joining such a chain by state sync", async () => {
    const joining = {
      CAUSEWAY_CONFIG_STATESYNC_ENABLE: "true",
      CAUSEWAY_CONFIG_STATESYNC_RPC_SERVERS: "http://127.0.0.1:1,http://127.0.0.1:2",
      CAUSEWAY_CONFIG_STATESYNC_TRUST_HEIGHT: "1",
      CAUSEWAY_CONFIG_STATESYNC_TRUST_HASH: "ab".repeat(32),
    };
    await expect(start(joining)).resolves.toEqual(["node"]);
  });
});
