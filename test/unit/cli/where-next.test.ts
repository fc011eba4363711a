import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "@jest/globals";
import { homePaths } from "../../../cli/home/home.js";
import { loadKitConfig } from "../../../cli/home/kit-config.js";
import { causewayCommand, whereToLookNext } from "../../../cli/where-next.js";

const folder = mkdtempSync(join(tmpdir(), "causeway where it's "));

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A home whose files were written with this offset. */
function homeOf(name: string, portOffset: number): string {
  const home = join(folder, name);
  mkdirSync(join(home, "config"), { recursive: true });
  writeFileSync(join(home, "config", "app.toml"), `port-offset = ${portOffset}\n`);
  writeFileSync(join(home, "config", "api.key"), "the-key\n");
  return home;
}

/** What a shell makes of a command line. */
function words(line: string): string[] {
  const script = `set -- ${line}; for word; do printf '%s\\n' "$word"; done`;
  return execFileSync("sh", ["-c", script], { encoding: "utf8" }).trimEnd().split("\n");
}

describe("the commands that a start shows", () => {
  it("mean the kit that runs: its home, and its ports where the home's files name others", () => {
    const home = homeOf("one", 400);
    expect(words(causewayCommand("doctor", home, 400))).toEqual([
      ..."npm run causeway -- doctor --home".split(" "),
      home,
    ]);
    expect(words(causewayCommand("doctor", home, 700))).toEqual([
      ..."npm run causeway -- doctor --home".split(" "),
      home,
      "--port-offset",
      "700",
    ]);
  });

  it("can be typed as they stand, whatever the home is called", () => {
    const home = homeOf("two", 0);
    const { endpoints } = loadKitConfig({ home, env: {}, portOffset: 0 });
    const lines = whereToLookNext(homePaths(home), endpoints, {
      hotWallet: undefined,
      portOffset: 0,
    });
    const curl = lines.find((line) => line.includes("curl")) ?? "";
    expect(words(curl)).toContain("Authorization: Bearer the-key");
    const coins = lines.find((line) => line.includes("bank send")) ?? "";
    expect(words(coins.replace("<deposit address>", "0x31"))).toEqual([
      ..."npm run causeway -- tx bank send 0x31 1000000000000000000atoken --from faucet".split(" "),
      ..."--yes --home".split(" "),
      home,
    ]);
    expect(lines.at(-1)).toMatch(/^Ctrl-C stops everything.* next start goes on/);
    const reconcile = lines.find((line) => line.includes("reconcile")) ?? "";
    expect(words(reconcile)).toContain(home);
    expect(lines).toContain(
      "  consensus status  http://127.0.0.1:26657/status   metrics http://127.0.0.1:26660/metrics",
    );
  });

  it("name no page of metrics that is not served", () => {
    const env = { CAUSEWAY_CONFIG_INSTRUMENTATION_PROMETHEUS: "false" };
    const { endpoints } = loadKitConfig({ home: folder, env, portOffset: 0 });
    const lines = whereToLookNext(homePaths(folder), endpoints, {
      hotWallet: undefined,
      portOffset: 0,
    });
    expect(lines).toContain("  consensus status  http://127.0.0.1:26657/status");
  });
});
