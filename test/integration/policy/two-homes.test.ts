/** A treasury in a home of its own, whose copy of the policy is an older one: what is paid is the worker's to judge. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { HDNodeWallet, Mnemonic } from "ethers";
import { decideWithdrawal } from "../../../ledger/policy/approvals.js";
import { encodeKillSwitch } from "../../../ledger/kill-switch/kill-switch-file.js";
import { SWITCH_UNTOUCHED } from "../../../ledger/kill-switch/kill-switch-level.js";
import { policyFileText } from "../../../ledger/policy/policy.js";
import { killSwitchPath, policyPath } from "../../../ledger/policy/policy-paths.js";
import { PolicyKeeper } from "../../../withdrawal-worker/policy-keeper.js";
import { FAKE_CHAIN_ID } from "../../helpers/chains/fake-chain.js";
import { silentLog } from "../../helpers/services/ledger.js";
import { compiledFolder } from "../../helpers/services/services.js";
import { freshFile } from "../../helpers/signing.js";
import { until } from "../../helpers/until.js";
import { freshAddress, House, WALLET } from "../withdrawal-worker/house.js";
import { policyOf } from "./terms.js";

let house: House;
let treasury: ChildProcess | undefined;

beforeEach(async () => {
  house = await House.open();
  await house.fund("alice", 1_000_000n);
});

afterEach(async () => {
  if (treasury !== undefined && treasury.exitCode === null) {
    treasury.kill("SIGTERM");
    await once(treasury, "exit");
  }
  await house.close();
});

/** A home with a policy. */
function homeWith(policy: ReturnType<typeof policyOf>): string {
  const home = dirname(freshFile("x"));
  mkdirSync(join(home, "config"));
  mkdirSync(join(home, "data"));
  writeFileSync(policyPath(home), policyFileText(policy.policy));
  return home;
}

/** The treasury as a process of its own; resolves behind its first round. */
async function startTreasury(home: string): Promise<void> {
  const phrase = Mnemonic.fromPhrase(`${"test ".repeat(11)}junk`);
  const account = HDNodeWallet.fromMnemonic(phrase, "m/44'/60'/0'/0");
  const files: Readonly<Record<string, string>> = {
    "deposit.seed": phrase.phrase,
    "deposit.xpub": account.neuter().extendedKey,
    "hot-wallet.json": JSON.stringify({ address: WALLET }),
    "tokens.json": "[]",
  };
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(home, "config", name), `${text}\n`, { mode: 0o600 });
  }
  writeFileSync(killSwitchPath(home), encodeKillSwitch(SWITCH_UNTOUCHED), { mode: 0o600 });
  const main = join(await compiledFolder(), "withdrawal-worker", "treasury", "main.js");
  const env = {
    PATH: process.env["PATH"],
    DATABASE_URL: house.ledger.url,
    CAUSEWAY_WORKER_NODE_JSON_RPC_URL: house.chain.url,
    CAUSEWAY_WORKER_TREASURY_SCAN_INTERVAL_MS: "50",
  };
  let output = "";
  treasury = spawn(process.execPath, [main, "--home", home], { env });
  for (const stream of [treasury.stdout, treasury.stderr]) {
    stream?.on("data", (chunk: Buffer) => {
      output += chunk.toString("utf8");
    });
  }
  const round = join(home, "data", "treasury-round");
  await until(
    () => {
      if (treasury?.exitCode !== null) throw new Error(output);
      return existsSync(round);
    },
    { timeoutMs: 20_000, what: "the treasury has made a round" },
  );
}

it("brings no policy into force, and judges nothing that waits for persons", async () => {
  const former = policyOf({ maximumUnits: 5n });
  const listed = freshAddress();
  const allowList = {
    delayHours: 0,
    others: "any" as const,
    customers: new Map([["bob", new Set([listed])]]),
  };
  const approvals = [{ aboveUnits: 0n, needed: 1, signed: false }];
  const present = policyOf({ approvals }, { allowList });
  const file = policyPath(homeWith(present));
  const parts = { database: house.database, file, clock: house.clock, log: silentLog };
  const keeper = await PolicyKeeper.open(parts);
  house.files.policy = present;
  const asked = await house.accept({ amountUnits: 10n, requestedBy: "asker" });
  await startTreasury(homeWith(former));
  expect((await house.read(asked.id)).status).toBe("pending_approval");
  const said = { id: asked.id, keyId: "ann", decision: "approve", reason: "fine" } as const;
  const by = { policy: await keeper.current(), chainId: FAKE_CHAIN_ID };
  expect(await decideWithdrawal(house.database, said, by)).toBe("done");
  expect((await house.read(asked.id)).status).toBe("accepted");
  const activations = await house.database.query(`SELECT policy_hash FROM policy_activation`);
  expect(activations).toEqual([{ policy_hash: present.hash }]);
  expect(
    await house.database.query(`SELECT listed FROM policy_listing WHERE destination = $1`, [
      listed,
    ]),
  ).toEqual([{ listed: true }]);
});
