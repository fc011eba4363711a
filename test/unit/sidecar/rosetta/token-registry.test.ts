import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { parseAddress, ZERO_ADDRESS } from "../../../../chain/address.js";
import { ConfigError } from "../../../../runtime/config/config.js";
import { loadTokenRegistry, TokenRegistry } from "../../../../sidecar/rosetta/token-registry.js";
import { CURRENCY, GOLD, REGISTRY, SILVER } from "../../../helpers/chains/known-tokens.js";

const gold = {
  contractAddress: parseAddress(GOLD.metadata.contractAddress),
  symbol: "GOLD",
  decimals: 6,
};
const silver = {
  contractAddress: parseAddress(SILVER.metadata.contractAddress),
  symbol: "SILVER",
  decimals: 18,
};

describe("the token registry", () => {
  it("gives one frozen currency per token, checksummed", () => {
    const token = REGISTRY.byAddress(gold.contractAddress);
    expect(token?.currency).toEqual(GOLD);
    expect(REGISTRY.byAddress(gold.contractAddress)?.currency).toBe(token?.currency);
    expect(Object.isFrozen(token?.currency) && Object.isFrozen(token?.currency.metadata)).toBe(
      true,
    );
    expect(REGISTRY.byAddress(ZERO_ADDRESS)).toBeUndefined();
  });

  it("knows a currency only where every part is as pinned", () => {
    expect(REGISTRY.resolve({ ...CURRENCY, contractAddress: undefined })).toEqual({
      kind: "native",
    });
    expect(REGISTRY.resolve(gold)).toMatchObject({ kind: "token", token: { currency: GOLD } });
    for (const other of [
      { ...gold, symbol: "gold" },
      { ...gold, decimals: 18 },
      { ...gold, contractAddress: ZERO_ADDRESS },
      { ...gold, contractAddress: undefined },
      { symbol: "TOKEN", decimals: 6, contractAddress: undefined },
      { symbol: "TOKEN", decimals: 18, contractAddress: gold.contractAddress },
    ]) {
      expect({ other, known: REGISTRY.resolve(other) }).toEqual({ other, known: undefined });
    }
  });

  it("has a version that tells another list, not another order", () => {
    const version = (...entries: (typeof gold)[]) => new TokenRegistry(entries).version;
    expect(version(gold, silver)).toMatch(/^[0-9a-f]{16}$/);
    expect(version(silver, gold)).toBe(version(gold, silver));
    const others = [
      version(),
      version(gold),
      version(gold, { ...silver, decimals: 17 }),
      version(gold, { ...silver, symbol: "SLV" }),
    ];
    expect(new Set([...others, version(gold, silver)]).size).toBe(5);
  });
});

describe("the registry of a home", () => {
  let home: string;

  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), "causeway-tokens-"));
    mkdirSync(join(home, "config"));
  });

  afterEach(() => rmSync(home, { recursive: true, force: true }));

  const file = () => join(home, "config", "tokens.json");

  it("is empty without the file, and what the file says with it", () => {
    expect(loadTokenRegistry(home).tokens).toEqual([]);
    writeFileSync(file(), JSON.stringify([{ ...GOLD, ...GOLD.metadata, metadata: undefined }]));
    expect(loadTokenRegistry(home).tokens.map(({ currency }) => currency)).toEqual([GOLD]);
  });

  it("refuses a wrong file with every fault, file and key", () => {
    const wrong = [
      { ...gold, symbol: "" },
      { ...silver, decimals: -1 },
    ];
    writeFileSync(file(), JSON.stringify(wrong));
    const faults = faultsOf(() => loadTokenRegistry(home));
    expect(faults.map(({ file: where, key }) => [where, key])).toEqual([
      [file(), "[0].symbol"],
      [file(), "[1].decimals"],
    ]);
  });

  it("refuses a file that cannot be read", () => {
    mkdirSync(file());
    expect(faultsOf(() => loadTokenRegistry(home))).toMatchObject([
      { file: file(), key: "(whole file)", value: "EISDIR" },
    ]);
  });
});

function faultsOf(work: () => unknown): ConfigError["faults"] {
  try {
    work();
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
  return [];
}
