/** Homes whose copies of the policy differ: what a person forbids at one worker is paid by no other. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { HDNodeWallet, Mnemonic } from "ethers";
import { cancelWithdrawal } from "../../../ledger/withdrawals/cancellation.js";
import { decideWithdrawal } from "../../../ledger/policy/approvals.js";
import { markPath } from "../../../ledger/guard/home-mark.js";
import { encodeKillSwitch } from "../../../ledger/kill-switch/kill-switch-file.js";
import { SWITCH_UNTOUCHED } from "../../../ledger/kill-switch/kill-switch-level.js";
import { policyFileText } from "../../../ledger/policy/policy.js";
import { killSwitchPath, policyPath } from "../../../ledger/policy/policy-paths.js";
import type { SqlDatabase } from "../../../runtime/sql/sql.js";
import { PolicyKeeper } from "../../../withdrawal-worker/policy-keeper.js";
import { FAKE_CHAIN_ID } from "../../helpers/chains/fake-chain.js";
import { silentLog } from "../../helpers/services/ledger.js";
import { compiledFolder } from "../../helpers/services/services.js";
import { freshFile } from "../../helpers/keys/signing.js";
import { until } from "../../helpers/until.js";
import { freshAddress, House, WALLET } from "../../helpers/exchange/house.js";
import { policyOf } from "./terms.js";

let house: House;
let treasury: ChildProcess | undefined;

beforeEach(async () => {
  house = await House.withAlice(1_000_000n);
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

/** Where it writes when a round has ended. */
const roundFile = (home: string) => join(home, "data", "treasury-round");

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
  const round = roundFile(home);
  await until(
    () => {
      if (treasury?.exitCode !== null) throw new Error(output);
      return existsSync(round);
    },
    { timeoutMs: 20_000, what: "the treasury has made a round" },
  );
}

it("takes its word back that it works when it ends", async () => {
  const home = homeWith(policyOf({}));
  await startTreasury(home);
  // It remembers its ledger by then, as the worker and the watcher do in theirs.
  expect(existsSync(markPath(home))).toBe(true);
  treasury?.kill("SIGTERM");
  if (treasury !== undefined) await once(treasury, "exit");
  expect(existsSync(roundFile(home))).toBe(false);
});

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
  const home = homeWith(present);
  const parts = { database: house.database, home, clock: house.clock, log: silentLog };
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

describe("a worker whose policy another worker's has taken the place of", () => {
  const [loose, strict] = [policyOf({ maximumUnits: 100n }), policyOf({ maximumUnits: 5n })];
  const keeperOf = (home: string) =>
    PolicyKeeper.open({ database: house.database, home, clock: house.clock, log: silentLog });
  const write = (home: string, { policy }: typeof loose) =>
    writeFileSync(policyPath(home), policyFileText(policy));
  const active = async () => {
    const rows = await house.database.query<{ hash: string }>(
      `SELECT policy_hash AS hash FROM policy_activation ORDER BY id`,
    );
    return rows.map(({ hash }) => hash);
  };
  let homes: readonly [string, string];
  let keepers: readonly [PolicyKeeper, PolicyKeeper];

  beforeEach(async () => {
    homes = [homeWith(loose), homeWith(loose)];
    keepers = [await keeperOf(homes[0]), await keeperOf(homes[1])];
    write(homes[0], strict);
    await keepers[0].current();
    house.clock.ms += 1_000;
  });

  it("uses its own no more, also where it starts anew, until it is that one, or is changed", async () => {
    for (const behind of [keepers[1], await keeperOf(homes[1])]) {
      await expect(behind.current()).rejects.toMatchObject({ code: "POLICY_UNREADABLE" });
      expect(behind.trouble()).toContain(strict.hash.slice(0, 12));
      expect((await keepers[0].current()).hash).toBe(strict.hash);
    }
    expect(await active()).toEqual([loose.hash, strict.hash]);
    write(homes[1], strict);
    expect((await keepers[1].current()).hash).toBe(strict.hash);
    expect(keepers[1].trouble()).toBeUndefined();
    expect(await active()).toEqual([loose.hash, strict.hash]);
    const changed = policyOf({ maximumUnits: 66n });
    write(homes[1], changed);
    expect((await keepers[1].current()).hash).toBe(changed.hash);
    house.clock.ms += 1_000;
    await expect(keepers[0].current()).rejects.toMatchObject({ code: "POLICY_UNREADABLE" });
    expect(keepers[0].trouble()).toContain("put that one here, or change this one");
  });

  it("is an added one with what every new home has, or whose home remembers nothing", async () => {
    const [first, second] = [policyOf({}), loose];
    for (const policy of [first, second]) {
      const added = homeWith(policy);
      const keeper = await keeperOf(added);
      await expect(keeper.current()).rejects.toMatchObject({ code: "POLICY_UNREADABLE" });
      expect(keeper.trouble()).toContain("is a former one, or a new home's");
      await expect((await keeperOf(added)).current()).rejects.toThrow(strict.hash.slice(0, 12));
      expect((await keepers[0].current()).hash).toBe(strict.hash);
      write(added, strict);
      expect((await keeper.current()).hash).toBe(strict.hash);
      expect((await (await keeperOf(added)).current()).hash).toBe(strict.hash);
    }
    expect(await active()).toEqual([loose.hash, strict.hash]);
    // What nobody has seen before a person has written.
    const changed = policyOf({ maximumUnits: 66n });
    expect((await (await keeperOf(homeWith(changed))).current()).hash).toBe(changed.hash);
    expect(await active()).toEqual([loose.hash, strict.hash, changed.hash]);
  });

  it.each([
    ["its process was killed", true],
    ["nobody answered", false],
  ])("knows its own one, also behind a commit at which %s", async (_what, isKilled) => {
    let isLost = false;
    const database: SqlDatabase = {
      ...house.database,
      query: (text, values) => house.database.query(text, values),
      async transaction(work) {
        const result = await house.database.transaction(work);
        if (!isLost) return result;
        isLost = false;
        throw new Error("lost behind the commit");
      },
    };
    const keeper = await PolicyKeeper.open({
      database,
      home: homes[0],
      clock: house.clock,
      log: silentLog,
    });
    const [looser, strictest] = [policyOf({ maximumUnits: 50n }), policyOf({ maximumUnits: 1n })];
    write(homes[0], looser);
    isLost = true;
    await expect(keeper.current()).rejects.toThrow("lost behind the commit");
    write(homes[1], strictest);
    expect((await keepers[1].current()).hash).toBe(strictest.hash);
    const behind = isKilled ? await keeperOf(homes[0]) : keeper;
    await expect(behind.current()).rejects.toMatchObject({ code: "POLICY_UNREADABLE" });
    expect(behind.trouble()).toContain(strictest.hash.slice(0, 12));
    const former = [loose.hash, strict.hash, looser.hash, strictest.hash];
    expect(await active()).toEqual(former);
    const changed = policyOf({ maximumUnits: 66n });
    write(homes[0], changed);
    expect((await behind.current()).hash).toBe(changed.hash);
    expect(await active()).toEqual([...former, changed.hash]);
  });

  it("is not one whose change was lost with its process: it comes into force", async () => {
    const database: SqlDatabase = {
      ...house.database,
      query: (text, values) => house.database.query(text, values),
      transaction: (work) =>
        house.database.transaction(async (tx) => {
          await work(tx);
          throw new Error("killed before the commit");
        }),
    };
    const changed = policyOf({ maximumUnits: 50n });
    write(homes[0], changed);
    const parts = { database, home: homes[0], clock: house.clock, log: silentLog };
    await expect(PolicyKeeper.open(parts)).rejects.toThrow("killed before the commit");
    expect((await (await keeperOf(homes[0])).current()).hash).toBe(changed.hash);
    expect(await active()).toEqual([loose.hash, strict.hash, changed.hash]);
  });

  it("gives no nonce by it, also where it asked just before which one is in force", async () => {
    house.files.policy = loose;
    const big = await house.accept({ amountUnits: 10n });
    // It stood still behind the answer, or asked less than a second ago.
    const still = house.laneWith({ policy: { current: async () => loose } });
    await still.runRound(house.signal);
    expect(await house.read(big.id)).toMatchObject({ status: "accepted", nonce: undefined });
    const other = house.laneWith({ policy: keepers[0] });
    await house.database.query(`UPDATE hot_wallet SET lease_expires_at = now() - interval '1 s'`);
    await other.runRound(house.signal);
    expect((await house.read(big.id)).status).toBe("rejected");
  });

  it("keeps no payment that was signed by it meanwhile, and all the same what gives a nonce up", async () => {
    house.files.policy = strict;
    const { id } = await house.accept({ amountUnits: 5n });
    const { signer } = house.context();
    let signed = 0;
    const slow: typeof signer = {
      address: signer.address,
      review: (payments) => signer.review(payments),
      trouble: () => signer.trouble(),
      async sign(intents, options) {
        const outcomes = await signer.sign(intents, options);
        signed += outcomes.filter(({ kind }) => kind === "signed").length;
        write(homes[0], policyOf({ maximumUnits: 1n }));
        await keepers[0].current();
        return outcomes;
      },
    };
    const lane = house.laneWith({ policy: { current: async () => strict }, signer: slow });
    await lane.runRound(house.signal);
    expect(signed).toBe(1);
    expect(await house.read(id)).toMatchObject({ status: "slotted", hashes: [] });
    expect(house.chain.arrived).toEqual([]);
    expect(await cancelWithdrawal(house.database, id, "not wanted any more")).toBe("done");
    await house.pass(lane);
    expect((await house.read(id)).status).toBe("cancelled");
  });

  it("pays nothing that is forbidden by now, and leaves the wallet to the other one", async () => {
    house.files.policy = loose;
    const [small, big] = [
      await house.accept({ amountUnits: 5n }),
      await house.accept({ amountUnits: 10n }),
    ];
    const behind = house.laneWith({ policy: keepers[1] });
    for (let round = 0; round < 2; round += 1) {
      await behind.runRound(house.signal).catch(() => undefined);
      house.chain.mine();
    }
    expect(house.chain.arrived).toEqual([]);
    expect((await house.read(big.id)).status).toBe("accepted");
    const other = house.laneWith({ policy: keepers[0] });
    for (let round = 0; round < 4; round += 1) {
      await other.runRound(house.signal);
      house.chain.mine();
    }
    expect((await house.read(small.id)).status).toBe("settled");
    expect(await house.read(big.id)).toMatchObject({
      status: "rejected",
      reason: expect.stringContaining("ABOVE_MAXIMUM"),
    });
  });
});
