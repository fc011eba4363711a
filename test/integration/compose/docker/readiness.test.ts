/** When a service of docker-compose.yml is well, and what starts behind what. */
import { describe, expect, it } from "@jest/globals";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hashPolicy, PERMISSIVE_POLICY } from "../../../../ledger/policy/policy.js";
import { treasuryRoundHoldsMs } from "../../../../withdrawal-worker/config.js";
import { WatchedRounds } from "../../../../withdrawal-worker/treasury/watched-rounds.js";
import { silentLog } from "../../../helpers/services/ledger.js";
import { serviceNamed, services } from "./compose-file.js";

/** `treasury.scan-interval-ms` at most. */
const LONGEST_SCAN_INTERVAL_MS = 600_000;

describe("docker-compose.yml", () => {
  it("asks whether parts are ready, not only whether they live", () => {
    for (const [name, { healthcheck }] of services) {
      const words = healthcheck?.test.join(" ") ?? "";
      expect(`${name} ${words.includes("/health")}`).toBe(`${name} false`);
    }
    for (const name of [
      "sidecar-online",
      "sidecar-offline",
      "deposit-watcher",
      "indexer",
      "explorer",
      "console",
    ]) {
      expect(serviceNamed(name).healthcheck?.test.join(" ")).toContain("/ready");
    }
    expect(serviceNamed("withdrawal-worker").healthcheck?.test.join(" ")).toContain("/ready");
    expect(serviceNamed("node").healthcheck?.test.join(" ")).toContain("catching_up===false");
  });

  it("starts the database from outside after a crash of one of its processes", () => {
    const database = serviceNamed("postgres");
    expect(database.command).toEqual(["postgres", "-c", "restart_after_crash=off"]);
    expect(database.restart).toBe("unless-stopped");
  });

  it.each([
    ["is ready where the owner gets in and the superuser does not", "echo f", 0],
    ["is not ready where the first start left the superuser's login", "echo t", 1],
    ["is not ready where the first start made no owner", "exit 2", 1],
  ])("asks the database itself: it %s", (_name, psql, status) => {
    const folder = mkdtempSync(join(tmpdir(), "causeway-psql-"));
    // It stands in for the image's, and knows what it must have been given.
    const asked =
      '[ "$PGPASSWORD" = hush ] || exit 3; case "$*" in *--username=causeway*) ;; *) exit 3;; esac';
    writeFileSync(join(folder, "psql"), `#!/bin/sh\n${asked}\n${psql}\n`, { mode: 0o755 });
    writeFileSync(join(folder, "password"), "hush\n");
    const [kind, script = ""] = serviceNamed("postgres").healthcheck?.test ?? [];
    expect(kind).toBe("CMD-SHELL");
    const words = script
      .replaceAll("$$", "$")
      .replace("/run/causeway/config/postgres.password", join(folder, "password"));
    const env = { PATH: `${folder}:${process.env["PATH"]}` };
    expect(spawnSync("sh", ["-c", words], { env }).status).toBe(status);
    rmSync(folder, { recursive: true });
  });

  it("takes a treasury for well for as long as its rounds may be apart, and no longer", async () => {
    const check = serviceNamed("treasury").healthcheck?.test.at(-1) ?? "";
    const folder = mkdtempSync(join(tmpdir(), "causeway-round-"));
    const file = join(folder, "treasury-round");
    const rounds = new WatchedRounds({
      guard: { look: async () => undefined },
      sweeper: { round: async () => false },
      nowhere: { look: async () => false },
      homeSwitch: { look: async () => undefined, trouble: () => undefined },
      policy: { current: async () => hashPolicy(PERMISSIVE_POLICY) },
      file,
      holdsMs: treasuryRoundHoldsMs(LONGEST_SCAN_INTERVAL_MS),
      log: silentLog,
    });
    await rounds.round(new AbortController().signal);
    const nowMs = Date.now();
    const codeAfter = (waitedMs: number) => {
      const script = check.replace("/home/causeway/data/treasury-round", file);
      const later = `Date.now=()=>${nowMs + waitedMs};`;
      return spawnSync(process.execPath, ["-e", later + script]).status;
    };
    expect([codeAfter(0), codeAfter(LONGEST_SCAN_INTERVAL_MS + 60_000)]).toEqual([0, 0]);
    expect(codeAfter(LONGEST_SCAN_INTERVAL_MS + 121_000)).toBe(1);
    // A clock that was put back: whether the treasury works shows at the end of its next round.
    expect([codeAfter(-50_000), codeAfter(-70_000)]).toEqual([0, 1]);
    await rounds.forget();
    expect(codeAfter(0)).toBe(1);
    rmSync(folder, { recursive: true });
  });

  it("checks the health of every service that stays up", () => {
    for (const [name, { restart, healthcheck }] of services) {
      expect({ name, checked: healthcheck !== undefined }).toEqual({
        name,
        checked: restart !== "no",
      });
    }
  });

  it("starts in order: homes, then databases and node, then migrations, then their users", () => {
    for (const [name, { depends_on }] of services) {
      for (const [needed, { condition: when }] of Object.entries(depends_on)) {
        const isOneShot = serviceNamed(needed).restart === "no";
        // Compose gives up on what is unhealthy, as these are for as long as they catch up.
        const isSlow = ["node", "sidecar-online"].includes(needed);
        const whenUp = isSlow ? "service_started" : "service_healthy";
        const expected = isOneShot ? "service_completed_successfully" : whenUp;
        expect(`${name} ${needed} ${when}`).toBe(`${name} ${needed} ${expected}`);
      }
    }
    expect(Object.keys(serviceNamed("migrate").depends_on).toSorted()).toEqual([
      "node",
      "postgres",
    ]);
    for (const name of ["deposit-watcher", "withdrawal-worker", "treasury", "indexer"]) {
      expect(Object.keys(serviceNamed(name).depends_on)).toContain("migrate");
    }
  });
});
