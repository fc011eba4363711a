import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "@jest/globals";
import { homeFileFaults } from "../../../../cli/home/file-faults.js";
import { homePaths } from "../../../../cli/home/home.js";
import { encodeKillSwitch } from "../../../../ledger/kill-switch/kill-switch-file.js";
import { SWITCH_UNTOUCHED } from "../../../../ledger/kill-switch/kill-switch-level.js";
import { hashPolicy, PERMISSIVE_POLICY, policyFileText } from "../../../../ledger/policy/policy.js";
import { loadPolicyFile } from "../../../../ledger/policy/policy-file.js";
import { keystoreFiles } from "../../../../ledger/wallets/home-wallets.js";

const homes: string[] = [];

afterEach(() => {
  for (const home of homes.splice(0)) rmSync(home, { recursive: true, force: true });
});

function faultsOf(tokens: readonly { readonly symbol: string }[]): readonly string[] {
  const home = mkdtempSync(join(tmpdir(), "causeway-file-faults-"));
  homes.push(home);
  mkdirSync(join(home, "config"));
  const entries = tokens.map(({ symbol }, index) => ({
    contractAddress: `0x${String(index + 1).padStart(40, "0")}`,
    symbol,
    decimals: 6,
  }));
  writeFileSync(join(home, "config", "tokens.json"), JSON.stringify(entries));
  return homeFileFaults(homePaths(home)).map(({ key, value }) => `${key} ${value}`);
}

describe("files of a home, before anything is started", () => {
  it("may name tokens as customers can", () => {
    expect(faultsOf([{ symbol: "GOLD" }, { symbol: "gold" }])).toEqual([]);
  });

  it("must not name two tokens alike, nor as no customer could ask for one", () => {
    expect(faultsOf([{ symbol: "GOLD" }, { symbol: "GOLD" }, { symbol: "a/b" }])).toEqual([
      '[1].symbol "GOLD"',
      '[2].symbol "a/b"',
    ]);
  });

  it("may begin with a byte order mark where people edit them", () => {
    const home = mkdtempSync(join(tmpdir(), "causeway-file-faults-"));
    homes.push(home);
    const paths = homePaths(home);
    mkdirSync(join(home, "config"));
    for (const [file, text] of [
      [paths.tokens, "[]"],
      [paths.policy, policyFileText(PERMISSIVE_POLICY)],
      [paths.killSwitch, encodeKillSwitch(SWITCH_UNTOUCHED)],
    ] as const) {
      writeFileSync(file, `\ufeff${text}`);
    }
    expect(homeFileFaults(paths)).toEqual([]);
    expect(loadPolicyFile(paths.policy)).toEqual(hashPolicy(PERMISSIVE_POLICY));
  });

  it("are no keystores where they are hidden, as those that systems and editors leave beside one", () => {
    const home = mkdtempSync(join(tmpdir(), "causeway-file-faults-"));
    homes.push(home);
    const wallets = join(home, "config", "wallets");
    mkdirSync(wallets, { recursive: true });
    writeFileSync(join(wallets, "main.json"), JSON.stringify({ address: "70".repeat(20) }));
    for (const name of ["._main.json", ".#main.json"]) writeFileSync(join(wallets, name), "\0");
    expect(homeFileFaults(homePaths(home))).toEqual([]);
    expect(keystoreFiles(home).map(({ keystore }) => keystore)).toEqual([
      join(home, "config", "hot-wallet.json"),
      join(wallets, "main.json"),
    ]);
  });

  it("have no genesis of 0.1.0, which is told as such", () => {
    const home = mkdtempSync(join(tmpdir(), "causeway-file-faults-"));
    homes.push(home);
    const paths = homePaths(home);
    mkdirSync(join(home, "config"));
    const params = { blockIntervalMs: 2_000, maxGas: "30000000", maxCallGas: "4000000" };
    writeFileSync(paths.genesis, JSON.stringify({ network: "testnet", params }));
    const [fault] = homeFileFaults(paths);
    expect(fault).toMatchObject({ file: paths.genesis, value: "unusable" });
    expect(fault?.allowed).toContain(
      "this chain was made by release 0.1.0 and does not go over: a new one begins in a new home, " +
        "and the ledger of this one can be kept to be read",
    );
    expect(fault?.allowed).not.toContain("maxCallGas");
  });

  it("have an API key that a client can send", () => {
    const home = mkdtempSync(join(tmpdir(), "causeway-file-faults-"));
    homes.push(home);
    const paths = homePaths(home);
    mkdirSync(join(home, "config"));
    writeFileSync(paths.apiKey, "a key\nand its secret\n");
    expect(homeFileFaults(paths)).toMatchObject([
      { file: paths.apiKey, value: "unusable", allowed: expect.stringContaining("one line") },
    ]);
    writeFileSync(paths.apiKey, "a-key\n");
    expect(homeFileFaults(paths)).toEqual([]);
  });
});
