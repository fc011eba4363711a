/** Upgrades that are given up: flags come beside what the settings name. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "@jest/globals";
import { withSkips } from "../../../../cli/home/skip-choice.js";
import { loadNodeSettings } from "../../../../node/settings/config.js";

const folder = mkdtempSync(join(tmpdir(), "causeway-skips-"));

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function homeWith(app: string): string {
  const home = mkdtempSync(join(folder, "home-"));
  mkdirSync(join(home, "config"));
  writeFileSync(join(home, "config", "app.toml"), app);
  return home;
}

const NAMED = 'skip-upgrades = ["100"]\n';

describe("heights of --skip-upgrade", () => {
  const skipsOf = (home: string, env: Record<string, string>, heights: readonly string[]) =>
    loadNodeSettings({ home, env: withSkips({ home, env }, heights) }).app[""]["skip-upgrades"];

  it("are given up beside those of app.toml, or of the variable in its place", () => {
    const home = homeWith(NAMED);
    expect(skipsOf(home, {}, ["200", "300"])).toEqual(["100", "200", "300"]);
    expect(skipsOf(home, {}, ["100"])).toEqual(["100"]);
    expect(skipsOf(home, { CAUSEWAY_APP_SKIP_UPGRADES: "150" }, ["200"])).toEqual(["150", "200"]);
  });

  it("leave the settings alone where there are none", () => {
    expect(skipsOf(homeWith(NAMED), {}, [])).toEqual(["100"]);
  });

  it("hide nothing of what is wrong with the settings", () => {
    const home = homeWith('skip-upgrades = ["x"]\nstrange = 1\n');
    expect(() => skipsOf(home, {}, ["200"])).toThrow(/strange/);
  });
});
