/** What the doctor says of the disks that a home lies on. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkDisks } from "../../../../cli/probe/doctor-checks.js";
import { homePaths, type HomePaths } from "../../../../cli/home/home.js";

const GIB = 2 ** 30;

let folder: string;
let paths: HomePaths;
/** Where the ledger lies. */
let elsewhere: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "causeway-disks-"));
  paths = homePaths(join(folder, "home"));
  elsewhere = join(folder, "elsewhere");
  for (const made of [paths.data, paths.store, elsewhere]) mkdirSync(made, { recursive: true });
  symlinkSync(elsewhere, join(paths.data, "postgres"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A disk of 100 GiB for the ledger, another one for all the rest; links are followed as the system does. */
function disks({ ledgerGib, homeGib }: { readonly ledgerGib: number; readonly homeGib: number }) {
  return (path: string) => {
    const isLedger = statSync(path).ino === statSync(elsewhere).ino;
    const freeBytes = (isLedger ? ledgerGib : homeGib) * GIB;
    return { device: isLedger ? 2 : 1, freeBytes, totalBytes: 100 * GIB };
  };
}

it.each([
  [5, "fail"],
  [15, "warn"],
  [80, "pass"],
])("look at the ledger's as well, with %d % free", (ledgerGib, severity) => {
  const findings = checkDisks(paths, disks({ ledgerGib, homeGib: 90 }));
  expect(findings.map((one) => [one.id, one.severity, one.value])).toEqual([
    ["disk", "pass", `90 % free (90.0 GiB) where ${paths.home} lies`],
    [
      "disk",
      severity,
      `${ledgerGib} % free (${ledgerGib}.0 GiB) where ${paths.data}/postgres lies`,
    ],
  ]);
  expect(findings[1]?.remedy === "").toBe(severity === "pass");
});

it("tell each disk once", () => {
  const one = { device: 1, freeBytes: 5 * GIB, totalBytes: 100 * GIB };
  expect(checkDisks(paths, () => one).map(({ severity }) => severity)).toEqual(["fail"]);
  expect(checkDisks(paths).map(({ id }) => id)).toEqual(["disk"]);
});

it("say which disk is not there that a folder links to", () => {
  rmSync(paths.store, { recursive: true });
  symlinkSync(join(folder, "not mounted"), paths.store);
  symlinkSync(join("..", "other disk"), paths.logs);
  const absent = (from: string, to: string) => ({
    id: "disk",
    severity: "fail",
    value: `${from} links to ${join(folder, to)}, which is not there`,
    remedy: expect.stringContaining("mount"),
  });
  expect(checkDisks(paths, disks({ ledgerGib: 90, homeGib: 90 })).slice(2)).toEqual([
    absent(paths.store, "not mounted"),
    absent(paths.logs, "other disk"),
  ]);
});

it("say which folder cannot be looked at, and pass over what is not there", () => {
  const look = (path: string) => {
    if (path.endsWith("postgres")) {
      throw Object.assign(new Error("EACCES: permission denied"), { code: "EACCES", path });
    }
    return disks({ ledgerGib: 90, homeGib: 90 })(path);
  };
  expect(checkDisks(paths, look)).toEqual([
    expect.objectContaining({ severity: "pass" }),
    {
      id: "disk",
      severity: "warn",
      value: expect.stringContaining(`Cannot use ${paths.data}/postgres: `),
      remedy: expect.stringContaining("look at"),
    },
  ]);
  const gone = homePaths(join(folder, "gone"));
  expect(checkDisks(gone)).toEqual([expect.objectContaining({ severity: "fail" })]);
});
