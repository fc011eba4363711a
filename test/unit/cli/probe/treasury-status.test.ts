/** What status and doctor say of the treasury, a process that listens on nothing. */
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "@jest/globals";
import { runStatus } from "../../../../cli/commands/status.js";
import { homePaths } from "../../../../cli/home/home.js";
import { loadKitConfig } from "../../../../cli/home/kit-config.js";
import { checkParts } from "../../../../cli/probe/doctor-checks.js";
import type { EvmClient } from "../../../../rpc-client/evm-client.js";
import type { Environment } from "../../../../runtime/config/config.js";

const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** Nobody listens there: the other parts are told as not answering. */
const PORT_OFFSET = 37_100;
const NOW_MS = Date.parse("2026-11-28T03:00:00Z");
const ENABLED: Environment = { CAUSEWAY_WORKER_TREASURY_ENABLED: "true" };
const { signal } = new AbortController();

/** A home whose treasury came to the end of a round so long ago; undefined for one that never did. */
function homeWith(ageSeconds: number | undefined): string {
  const home = mkdtempSync(join(tmpdir(), "causeway-treasury-"));
  folders.push(home);
  if (ageSeconds === undefined) return home;
  const file = join(home, "data", "treasury-round");
  mkdirSync(dirname(file));
  writeFileSync(file, "2026-11-28T00:00:00.000Z\n");
  const atSeconds = NOW_MS / 1_000 - ageSeconds;
  utimesSync(file, atSeconds, atSeconds);
  return home;
}

async function findingsOf(home: string, env: Environment) {
  const evm = {
    getBlockHeader: () => Promise.reject(new Error("nobody is there")),
    isSyncing: () => Promise.reject(new Error("nobody is there")),
  } as unknown as EvmClient;
  const context = {
    paths: homePaths(home),
    env,
    portOffset: PORT_OFFSET,
    clock: { nowMs: () => NOW_MS, monotonicMs: () => 0 },
    signal,
    createEvm: () => evm,
    readLedgerSwitch: async () => undefined,
    readLedgerPolicy: async () => undefined,
  };
  const findings = await checkParts(context, loadKitConfig({ home, env, portOffset: PORT_OFFSET }));
  return findings.filter(({ id }) => id === "treasury");
}

describe("the treasury", () => {
  it("is no part of a kit that has none", async () => {
    expect(await findingsOf(homeWith(10), {})).toEqual([]);
  });

  it("is ready while its rounds come to their end", async () => {
    expect(await findingsOf(homeWith(100), ENABLED)).toEqual([
      { id: "treasury", severity: "pass", value: "ready; it listens on nothing", remedy: "" },
    ]);
  });

  it("fails the doctor when it makes no rounds, who says where to look", async () => {
    const [silent, dead] = [homeWith(3_600), homeWith(undefined)];
    const remedy = "see logs/treasury.log, or start it with npm start";
    expect(await findingsOf(silent, ENABLED)).toEqual([
      {
        id: "treasury",
        severity: "fail",
        value: "its last round ended 3600 s ago: it does not run, or its rounds fail",
        remedy,
      },
    ]);
    expect(await findingsOf(dead, ENABLED)).toEqual([
      {
        id: "treasury",
        severity: "fail",
        value: "it does not run, or has not come to the end of a round yet",
        remedy,
      },
    ]);
  });

  it("fails the doctor while its last round is ahead of a clock that was put back", async () => {
    expect(await findingsOf(homeWith(-100), ENABLED)).toMatchObject([{ severity: "pass" }]);
    expect(await findingsOf(homeWith(-3_600), ENABLED)).toMatchObject([
      {
        severity: "fail",
        value:
          "its last round ended 3600 s ahead of this machine's clock: whether it works the next one tells",
      },
    ]);
  });

  it("is given the time between its rounds beside what one takes", async () => {
    const env = { ...ENABLED, CAUSEWAY_WORKER_TREASURY_SCAN_INTERVAL_MS: "600000" };
    expect(await findingsOf(homeWith(700), env)).toMatchObject([{ severity: "pass" }]);
  });

  it("is named by the status", async () => {
    const lines: string[] = [];
    const home = homeWith(undefined);
    const context = { home, portOffset: PORT_OFFSET, json: false, env: ENABLED, signal };
    expect(await runStatus({ ...context, print: (line) => lines.push(line) })).toBe(1);
    expect(lines.find((line) => line.startsWith("  treasury "))).toMatch(
      /\(listens on nothing\) +NOT READY: it does not run, or has not come to the end of a round yet$/,
    );
  });
});
