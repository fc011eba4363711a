/** A kill switch whose lift is killed as it looks at the file: it stops everybody until a person lifts it. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { runLiftSwitch, runSetSwitch } from "../../../../cli/commands/policy/kill-switch.js";
import type { LedgerCommand } from "../../../../cli/ledger/ledger-tools.js";
import { readKillSwitch } from "../../../../ledger/kill-switch/kill-switch.js";
import { killSwitchPath } from "../../../../ledger/policy/policy-paths.js";
import {
  createKillSwitch,
  ensureKillSwitchFile,
} from "../../../../withdrawal-worker/kill-switch.js";
import {
  openTestLedger,
  TEST_IDENTITY,
  type TestLedger,
} from "../../../helpers/services/ledger.js";
import { compiledFolder } from "../../../helpers/services/services.js";
import { freshFile } from "../../../helpers/keys/signing.js";

let ledger: TestLedger;
let home: string;

beforeAll(async () => {
  ledger = await openTestLedger(TEST_IDENTITY, "worker");
});

afterAll(async () => {
  await ledger.drop();
});

beforeEach(() => {
  home = dirname(freshFile("x"));
  mkdirSync(join(home, "config"));
});

const command = (url: string): LedgerCommand => ({
  home,
  portOffset: 0,
  json: false,
  env: { DATABASE_URL: url },
  signal: new AbortController().signal,
  print: () => undefined,
});

const owner = () => command(ledger.owner.url);
const DOWN = "postgres://nobody:x@127.0.0.1:1/none";

describe("a kill switch whose lift is killed", () => {
  const terms = { reason: "drill", operator: "ann" };

  /** What a process leaves that has taken the file from its name, and is gone. */
  async function liftAndDie(): Promise<void> {
    const library = join(await compiledFolder(), "runtime", "files", "durable-file.js");
    const program = `
      const { exchangeFile } = await import(process.argv[1]);
      const die = () => { process.kill(process.pid, "SIGKILL"); for (;;); };
      await exchangeFile(process.argv[2], die, { content: "lifted", mode: 0o600 });`;
    const args = [pathToFileURL(library).href, killSwitchPath(home)];
    const { signal } = spawnSync(process.execPath, [
      "--input-type=module",
      "--eval",
      program,
      ...args,
    ]);
    expect([signal, existsSync(killSwitchPath(home))]).toEqual(["SIGKILL", false]);
  }

  const level = async () => {
    const killSwitch = createKillSwitch({ sql: ledger.database, file: killSwitchPath(home) });
    return (await killSwitch.read()).level;
  };
  const files = () => readdirSync(join(home, "config")).filter((name) => name.includes("kill-"));

  it("stops everything, and a start finds what was set, though the ledger was never told", async () => {
    await ensureKillSwitchFile(killSwitchPath(home), ledger.database);
    expect(await runSetSwitch(command(DOWN), { ...terms, level: "stop-sign" })).toBe(1);
    await liftAndDie();
    expect([await level(), (await readKillSwitch(ledger.database)).level]).toEqual([
      "stop-broadcast",
      "none",
    ]);
    await ensureKillSwitchFile(killSwitchPath(home), ledger.database);
    expect([await level(), files()]).toEqual(["stop-sign", ["kill-switch.json"]]);
  });

  it("is lifted by another lift, and set by another set", async () => {
    await ensureKillSwitchFile(killSwitchPath(home), ledger.database);
    expect(await runSetSwitch(owner(), { ...terms, level: "stop-sign" })).toBe(0);
    await liftAndDie();
    expect(await runLiftSwitch(owner(), terms)).toBe(0);
    expect([await level(), files()]).toEqual(["none", ["kill-switch.json"]]);
    await liftAndDie();
    expect(await runSetSwitch(owner(), { ...terms, level: "stop-new" })).toBe(0);
    expect(await level()).toBe("stop-new");
    expect(await runLiftSwitch(owner(), terms)).toBe(0);
  });
});
